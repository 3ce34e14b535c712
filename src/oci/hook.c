/* hook.c - hooks go behind those that the config has. One that it has already, in every word, is
 * not run a second time: that is the same device injected again. Two devices with the same hook
 * both have it run, as each may need it. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/edit.h"
#include "json/json.h"

#define HOOK_NAMES (DV_CDI_HOOK_POSTSTOP + 1)
/* No hook of a spec is longer: it was a part of one. Of a config's, those that are can be no one's
 * equal. */
#define HOOK_BYTES_MAX (8u * DV_CDI_SPEC_BYTES_MAX)

/* The hooks of one name. */
struct list {
    struct dv_json *array; /* NULL until the first */
    struct dv_map known;   /* those that the config had, by their text */
};

static struct dv_json *make_hook(const struct dv_cdi_hook *hook, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    dv_oci_put(object, DV_STR("path"), hook->path, arena);
    if (hook->n_args > 0)
        dv_json_set(object, DV_STR("args"), dv_json_new_strs(hook->args, hook->n_args, arena),
                    arena);
    if (hook->n_env > 0)
        dv_json_set(object, DV_STR("env"), dv_json_new_strs(hook->env, hook->n_env, arena), arena);
    if (hook->timeout_s.is_set)
        dv_json_set(object, DV_STR("timeout"), dv_json_new_u64(hook->timeout_s.value, arena),
                    arena);
    return object;
}

/* Equal hooks have equal texts. */
static dv_str text_of(const struct dv_json *hook, struct dv_arena *arena)
{
    static const struct dv_json_style style = {.sort_keys = true};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, HOOK_BYTES_MAX);
    dv_json_print(hook, &style, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static bool open_list(struct dv_oci_edit *edit, enum dv_cdi_hook_name name, struct list *list,
                      struct dv_err *err)
{
    struct dv_json *hooks = dv_oci_object(edit->config, DV_STR("hooks"), edit->arena, err);

    if (list->array)
        return true;
    if (hooks)
        list->array =
            dv_oci_array(hooks, dv_str_from_c(dv_cdi_hook_name_text(name)), edit->arena, err);
    for (struct dv_json *at = dv_json_first(list->array); at; at = dv_json_next(at))
        (void)dv_map_set(&list->known, text_of(at, edit->arena), at); /* twice is fine */
    return list->array != NULL;
}

static bool add_hook(struct dv_oci_edit *edit, const struct dv_cdi_hook *spec, struct list *list,
                     struct dv_err *err)
{
    struct dv_json *hook = make_hook(spec, edit->arena);

    if (!open_list(edit, spec->name, list, err))
        return false;
    if (!dv_map_get(&list->known, text_of(hook, edit->arena)))
        dv_json_append(list->array, hook);
    return true;
}

static bool add_all(struct dv_oci_edit *edit, struct list *lists, struct dv_err *err)
{
    for (size_t i = 0; i < edit->edits->n_parts; i++) {
        const struct dv_cdi_container_edits *part = edit->edits->parts[i].edits;

        for (size_t k = 0; k < part->n_hooks; k++) {
            if (!add_hook(edit, &part->hooks[k], &lists[part->hooks[k].name], err))
                return false;
        }
    }
    return true;
}

bool dv_oci_add_hooks(struct dv_oci_edit *edit, struct dv_err *err)
{
    struct list lists[HOOK_NAMES] = {0};
    bool is_ok;

    for (size_t i = 0; i < HOOK_NAMES; i++)
        dv_map_init(&lists[i].known);
    is_ok = add_all(edit, lists, err);
    for (size_t i = 0; i < HOOK_NAMES; i++)
        dv_map_fini(&lists[i].known);
    return is_ok;
}
