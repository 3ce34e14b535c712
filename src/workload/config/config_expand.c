/* config_expand.c - replaces $(NAME) in commands, arguments and values. */
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"

/* A dollar sign and what belongs to it. */
struct reference {
    dv_str name;      /* of a variable; p is NULL when it is none */
    dv_str literal;   /* what stands for it then */
    size_t n_read;    /* bytes */
    bool is_unclosed; /* there is no ')' in the rest of the text */
};

/* `text` begins with a dollar sign and goes on. With `is_open_ended` it is known to have no ')'. */
static struct reference read_reference(dv_str text, bool is_open_ended)
{
    size_t close;
    size_t n_char;

    switch (text.p[1]) {
    case '$':
        return (struct reference){.literal = DV_STR("$"), .n_read = 2};
    case '(':
        close = is_open_ended ? text.n : dv_str_find_char(text, ')');
        if (close < text.n)
            return (struct reference){.name = dv_str_slice(text, 2, close), .n_read = close + 1};
        return (struct reference){.literal = DV_STR("$("), .n_read = 2, .is_unclosed = true};
    default: /* the sign stands for itself, and so does the character after it */
        n_char = dv_str_utf8_char(dv_str_slice(text, 1, text.n));
        if (n_char == 0) /* as Go decodes it */
            return (struct reference){.literal = DV_STR("$\xef\xbf\xbd"), .n_read = 2};
        return (struct reference){.literal = dv_str_slice(text, 0, 1 + n_char),
                                  .n_read = 1 + n_char};
    }
}

static void add_reference(const struct reference *reference, dv_config_lookup *lookup,
                          const void *ctx, struct dv_buf *buf)
{
    dv_str value;

    if (!reference->name.p) {
        dv_buf_add(buf, reference->literal);
    } else if (lookup(ctx, reference->name, &value)) {
        dv_buf_add(buf, value);
    } else {
        dv_buf_add(buf, DV_STR("$("));
        dv_buf_add(buf, reference->name);
        dv_buf_add_char(buf, ')');
    }
}

bool dv_config_replace(dv_str text, dv_config_lookup *lookup, const void *ctx,
                       struct dv_arena *arena, dv_str *value, struct dv_err *err)
{
    bool is_open_ended = false; /* or else a text of "$($($(" would be searched for each of them */
    struct dv_buf buf;
    bool is_good;

    if (dv_str_find_char(text, '$') == text.n) {
        *value = text;
        return true;
    }
    dv_buf_init(&buf, DV_CONFIG_TEXT_BYTES_MAX);
    while (text.n > 0 && !buf.is_over) {
        size_t dollar = dv_str_find_char(text, '$');
        struct reference reference;

        if (dollar + 1 >= text.n) {
            dv_buf_add(&buf, text);
            break;
        }
        dv_buf_add(&buf, dv_str_slice(text, 0, dollar));
        text = dv_str_slice(text, dollar, text.n);
        reference = read_reference(text, is_open_ended);
        is_open_ended = is_open_ended || reference.is_unclosed;
        add_reference(&reference, lookup, ctx, &buf);
        text = dv_str_slice(text, reference.n_read, text.n);
    }
    is_good = dv_buf_check(&buf, "text with its variables expanded", err);
    if (is_good)
        *value = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return is_good;
}

/* Orders by name, and those of one name as they stand. */
static int by_name_and_place(const void *a, const void *b)
{
    const struct dv_str_entry *const *x = a;
    const struct dv_str_entry *const *y = b;
    int order = dv_str_cmp((*x)->key, (*y)->key);

    return order != 0 ? order : (*x > *y) - (*x < *y);
}

void dv_config_index(struct dv_config_environment *environment, struct dv_arena *arena)
{
    size_t n = environment->n;
    const struct dv_str_entry **sorted = DV_NEW_ARRAY(arena, const struct dv_str_entry *, n);

    for (size_t i = 0; i < n; i++)
        sorted[i] = &environment->v[i];
    qsort(sorted, n, sizeof(sorted[0]), by_name_and_place);
    environment->by_name = DV_NEW_ARRAY(arena, struct dv_str_entry, n);
    environment->n_by_name = 0;
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || !dv_str_eq(sorted[i]->key, sorted[i + 1]->key))
            environment->by_name[environment->n_by_name++] = *sorted[i];
}

bool dv_config_lookup_env(const void *environment, dv_str name, dv_str *value)
{
    const struct dv_config_environment *of = environment;
    const struct dv_str_entry *found = dv_entry_find(of->by_name, of->n_by_name, name);

    if (found)
        *value = found->value;
    return found != NULL;
}

bool dv_config_expand(dv_str text, const struct dv_config_environment *environment,
                      struct dv_arena *arena, dv_str *value, struct dv_err *err)
{
    return dv_config_replace(text, dv_config_lookup_env, environment, arena, value, err);
}

bool dv_config_expand_all(const dv_str *texts, size_t n,
                          const struct dv_config_environment *environment, size_t *n_left,
                          struct dv_arena *arena, dv_str **expanded, struct dv_err *err)
{
    dv_str *made = DV_NEW_ARRAY(arena, dv_str, n);

    for (size_t i = 0; i < n; i++) {
        if (!dv_config_expand(texts[i], environment, arena, &made[i], err))
            return false;
        if (made[i].n > *n_left)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED, "the command has more than %u bytes",
                           DV_CONFIG_TEXTS_BYTES_MAX);
        *n_left -= made[i].n;
    }
    *expanded = made;
    return true;
}

bool dv_config_probe_command(const struct dv_api_container *container,
                             const struct dv_strs *command, struct dv_arena *arena,
                             struct dv_strs *expanded, struct dv_err *err)
{
    struct dv_config_environment environment = {
        .v = DV_NEW_ARRAY(arena, struct dv_str_entry, container->n_env), .n = container->n_env};
    size_t n_left = DV_CONFIG_TEXTS_BYTES_MAX;
    dv_str *texts;

    for (size_t i = 0; i < container->n_env; i++)
        environment.v[i] = (struct dv_str_entry){container->env[i].name, container->env[i].value};
    dv_config_index(&environment, arena);
    if (!dv_config_expand_all(command->v, command->n, &environment, &n_left, arena, &texts, err))
        return false;
    *expanded = (struct dv_strs){texts, command->n};
    return true;
}
