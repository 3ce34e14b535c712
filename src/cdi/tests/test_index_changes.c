/* Specs that come and go one by one leave the index that one made of them all would be. */
#include "cdi/tests/test_cdi.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define PRIORITIES 3u
#define FILES 6u
#define SLOTS (PRIORITIES * FILES)
#define ROUNDS 4000u

struct model {
    struct dv_arena *arena;
    struct dv_cdi_index *index;
    struct dv_cdi_spec *specs[SLOTS]; /* by priority and path; NULL: not there */
    uint64_t state;
};

/* The same on each run: a failure can be looked at again. */
static unsigned roll(struct model *model, unsigned sides)
{
    model->state = model->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(model->state >> 33) % sides;
}

static void print_device(struct model *model, struct dv_buf *buf, unsigned name)
{
    static const char *const nodes[] = {
        "{path: /dev/ctl}",
        "{path: /dev/gpu0}",
        "{path: /dev//gpu0}",
        "{path: /dev/gpu1}",
        "{path: /dev/x, hostPath: /dev/gpu1}",
        "{path: /dev/x, type: c, major: 9, minor: 1}",
        "{path: /dev/y, type: b, major: 9, minor: 1}",
    };

    dv_buf_printf(buf, "{name: d%u, containerEdits: {env: [V=%u], deviceNodes: [", name,
                  roll(model, 100));
    for (unsigned i = roll(model, 4); i > 0; i--)
        dv_buf_printf(buf, "%s%s", nodes[roll(model, DV_COUNT(nodes))], i > 1 ? ", " : "");
    dv_buf_add_c(buf, "]}}");
}

static struct dv_cdi_spec *make_spec(struct model *model, unsigned slot)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    char path[32];
    bool has_one = false;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_buf_printf(&buf, "{cdiVersion: 0.6.0, kind: %s, devices: [",
                  roll(model, 2) ? "v.com/c" : "w.com/c");
    for (unsigned i = 0; i < 5; i++) {
        if (roll(model, 3) > 0)
            continue;
        if (has_one)
            dv_buf_add_c(&buf, ", ");
        print_device(model, &buf, i);
        has_one = true;
    }
    dv_buf_add_c(&buf, "]}"); /* without a device it is refused */
    (void)snprintf(path, sizeof(path), "/%u/%u.yaml", slot / FILES, slot % FILES);
    return spec_at(path, slot / FILES, dv_buf_c(&buf));
}

static struct dv_cdi_index *from_scratch(const struct model *model)
{
    struct dv_cdi_spec *specs[SLOTS];
    size_t n = 0;

    for (size_t i = 0; i < SLOTS; i++) {
        if (model->specs[i])
            specs[n++] = model->specs[i];
    }
    return dv_cdi_index_new(specs, n);
}

static void print_index(const struct dv_cdi_index *index, struct dv_buf *buf)
{
    const struct dv_cdi_spec *refused;

    print_devices(index, buf);
    dv_buf_printf(buf, "%zu problems\n", dv_cdi_check_print(index, buf));
    for (size_t at = 0; (refused = dv_cdi_index_refused(index, &at)) != NULL;)
        dv_buf_printf(buf, "refused %.*s\n", DV_FMT(refused->path));
}

static int by_text(const void *a, const void *b)
{
    return dv_str_cmp(*(const dv_str *)a, *(const dv_str *)b);
}

/* In no order of their own: sorted. */
static void print_owners(const struct dv_cdi_index *index, const struct dv_cdi_entry *entry,
                         struct dv_arena *arena, struct dv_buf *buf)
{
    for (size_t i = 0; i < entry->device->edits.n_nodes; i++) {
        const struct dv_cdi_node *node = &entry->device->edits.nodes[i];
        size_t n;
        const struct dv_cdi_nodes *const *sets =
            dv_cdi_index_owners(index, entry->spec->kind, node, &n);
        dv_str *lines = DV_NEW_ARRAY(arena, dv_str, n);

        for (size_t k = 0; k < n; k++) {
            lines[k] = DV_STR("");
            for (size_t m = 0; m < sets[k]->n_keys; m++)
                lines[k] =
                    dv_str_printf(arena, "%.*s %.*s", DV_FMT(lines[k]), DV_FMT(sets[k]->keys[m]));
        }
        assert_true(n > 0); /* the device itself */
        qsort(lines, n, sizeof(dv_str), by_text);
        for (size_t k = 0; k < n; k++)
            dv_buf_printf(buf, "{%.*s } ", DV_FMT(lines[k]));
    }
}

static void print_names(const struct dv_cdi_index *index, struct dv_arena *arena,
                        struct dv_buf *buf)
{
    for (unsigned i = 0; i < 18; i++) {
        dv_str name = dv_str_printf(arena, "%c.com/c=d%u", "vwx"[i / 6], i % 6);
        const struct dv_cdi_entry *entry = dv_cdi_index_find(index, name);
        struct dv_cdi_edits edits;
        struct dv_err err;

        if (dv_cdi_resolve(index, &name, 1, arena, &edits, &err))
            dv_buf_printf(buf, "%p %p %p\n", (const void *)edits.parts[0].edits,
                          (const void *)edits.parts[1].edits, (const void *)entry->spec);
        else
            dv_buf_printf(buf, "%s\n", err.msg);
        if (entry)
            print_owners(index, entry, arena, buf);
    }
}

static void expect_same(struct model *model)
{
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *want = from_scratch(model);
    DV_CLEANUP(dv_buf_fini) struct dv_buf got_text;
    DV_CLEANUP(dv_buf_fini) struct dv_buf want_text;
    const struct dv_cdi_entry **entries;
    size_t n;

    dv_buf_init(&got_text, PRINT_BYTES_MAX);
    dv_buf_init(&want_text, PRINT_BYTES_MAX);
    print_index(model->index, &got_text);
    print_names(model->index, model->arena, &got_text);
    print_index(want, &want_text);
    print_names(want, model->arena, &want_text);
    assert_string_equal(dv_buf_c(&got_text), dv_buf_c(&want_text));
    entries = dv_cdi_index_list(model->index, model->arena, &n);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(entries[i],
                         dv_cdi_index_find(model->index, entries[i]->device->full_name));
    dv_arena_reset(model->arena);
}

static void step(struct model *model)
{
    unsigned slot = roll(model, SLOTS);

    if (model->specs[slot]) {
        dv_cdi_index_remove(model->index, model->specs[slot]);
        dv_cdi_spec_unref(model->specs[slot]);
        model->specs[slot] = NULL;
        if (roll(model, 2))
            return;
    }
    model->specs[slot] = make_spec(model, slot);
    dv_cdi_index_add(model->index, model->specs[slot]);
}

static void changes_leave_what_a_new_index_would_be(void **state)
{
    struct model model = {.arena = dv_arena_new(), .index = dv_cdi_index_new(NULL, 0), .state = 1};

    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        step(&model);
        expect_same(&model);
        if (roll(&model, 4) == 0)
            dv_cdi_index_sweep(model.index);
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        if (!model.specs[i])
            continue;
        dv_cdi_index_remove(model.index, model.specs[i]);
        dv_cdi_spec_unref(model.specs[i]);
        model.specs[i] = NULL;
        expect_same(&model);
    }
    dv_cdi_index_free(model.index);
    dv_arena_free(model.arena);
}

static void what_was_removed_stays_until_it_is_swept(void **state)
{
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = dv_cdi_index_new(NULL, 0);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cdi_spec *low = spec_at("/etc/1.yaml", 0, ONE("0.5.0", "{env: [A=low]}"));
    struct dv_cdi_spec *high = spec_at("/run/1.yaml", 1, ONE("0.5.0", "{env: [A=high]}"));
    dv_str name = DV_STR("v.com/c=d");
    const struct dv_cdi_entry *entry;
    struct dv_cdi_edits edits;
    struct dv_err err;

    (void)state;
    dv_cdi_index_add(index, high);
    dv_cdi_index_add(index, low);
    assert_ok(dv_cdi_resolve(index, &name, 1, arena, &edits, &err), &err);
    entry = dv_cdi_index_find(index, name);
    dv_cdi_index_remove(index, high);
    dv_cdi_spec_unref(high);
    assert_str(entry->device->edits.env[0], "A=high");
    assert_str(edits.parts[1].edits->env[0], "A=high");
    assert_str(dv_cdi_index_find(index, name)->device->edits.env[0], "A=low");
    dv_cdi_index_sweep(index);
    assert_str(dv_cdi_index_find(index, name)->device->edits.env[0], "A=low");
    dv_cdi_spec_unref(low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_leave_what_a_new_index_would_be),
        cmocka_unit_test(what_was_removed_stays_until_it_is_swept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
