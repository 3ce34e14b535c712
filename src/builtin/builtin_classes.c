/* builtin_classes.c - a DeviceClass for each offer, so that claims and limits can ask for it by
 * name.
 *
 * A class of that name which somebody else has made stays as it is, and the offer says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "builtin/builtin_state.h"
#include "resource/resource.h"
#include "json/json.h"

/* Tells that a class is ours, with the name of the offer. */
#define LABEL "davit.node/offer"
#define MANAGER "davit-offer"
/* After the API has refused to make a class, or was not there. */
#define AGAIN_MS 15000u
/* How long it takes, as a rule, until what a server has answered shows in the view. */
#define SHOWN_MS 100u

/* ---- what is said of them ---- */

static void set_problem(struct dv_builtin_driver *builtin, dv_str offer, const char *text)
{
    struct dv_map *problems = &builtin->classes.problems;
    char *old = dv_map_get(problems, offer);

    if (old ? text && strcmp(old, text) == 0 : !text)
        return;
    if (text)
        dv_log(DV_LOG_WARN, "builtin: the class of an offer is not as it should be",
               DV_F_STR("offer", offer), DV_F_C("why", text));
    if (text)
        free(dv_map_set(problems, offer, strdup(text)));
    else
        free(dv_map_remove(problems, offer));
    dv_builtin_tell(builtin);
}

static void clear_problems(struct dv_builtin_driver *builtin)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&builtin->classes.problems, &at)) != NULL;)
        free(entry->value);
    dv_map_clear(&builtin->classes.problems);
}

const char *dv_builtin_class_problem(const struct dv_builtin_driver *builtin,
                                     const struct dv_offer *offer)
{
    return dv_map_get(&builtin->classes.problems, offer->name);
}

/* ---- as they are wanted ---- */

static dv_str expression_of(const struct dv_offer *offer, struct dv_arena *arena)
{
    return dv_str_printf(arena,
                         "device.driver == \"" DV_OFFER_DRIVER "\" && "
                         "device.attributes[\"" DV_OFFER_DRIVER "\"].offer == \"%.*s\"",
                         DV_FMT(offer->name));
}

static dv_str label_of(const struct dv_api_object_meta *meta)
{
    for (size_t i = 0; i < meta->n_labels; i++)
        if (dv_str_eq(meta->labels[i].key, DV_STR(LABEL)))
            return meta->labels[i].value;
    return DV_STR("");
}

static bool is_as_wanted(const struct dv_api_device_class *class, const struct dv_offer *offer,
                         struct dv_arena *arena)
{
    const struct dv_api_device_class_spec *spec = &class->spec;

    return dv_str_eq(label_of(&class->metadata), offer->name) && spec->n_selectors == 1 &&
           spec->selectors[0].cel &&
           dv_str_eq(spec->selectors[0].cel->expression, expression_of(offer, arena)) &&
           dv_str_eq(spec->extended_resource_name, offer->resource);
}

static void set_text(struct dv_json *object, const char *key, dv_str value, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(value, arena), arena);
}

static struct dv_json *class_json(const struct dv_offer *offer, struct dv_arena *arena)
{
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *metadata = dv_json_new_object(arena);
    struct dv_json *labels = dv_json_new_object(arena);
    struct dv_json *spec = dv_json_new_object(arena);
    struct dv_json *selectors = dv_json_new_array(arena);
    struct dv_json *selector = dv_json_new_object(arena);
    struct dv_json *cel = dv_json_new_object(arena);

    set_text(doc, "apiVersion", DV_STR("resource.k8s.io/v1"), arena);
    set_text(doc, "kind", DV_STR("DeviceClass"), arena);
    set_text(metadata, "name", offer->class_name, arena);
    set_text(labels, LABEL, offer->name, arena);
    dv_json_set(metadata, DV_STR("labels"), labels, arena);
    dv_json_set(doc, DV_STR("metadata"), metadata, arena);
    set_text(cel, "expression", expression_of(offer, arena), arena);
    dv_json_set(selector, DV_STR("cel"), cel, arena);
    dv_json_append(selectors, selector);
    dv_json_set(spec, DV_STR("selectors"), selectors, arena);
    set_text(spec, "extendedResourceName", offer->resource, arena);
    dv_json_set(doc, DV_STR("spec"), spec, arena);
    return doc;
}

/* ---- requests, one at a time ---- */

static void on_shown(struct dv_timer *timer)
{
    dv_builtin_classes_look(DV_CONTAINER(timer, struct dv_builtin_driver, classes.timer));
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_builtin_driver *builtin =
        DV_CONTAINER(request, struct dv_builtin_driver, classes.request);
    struct dv_builtin_classes *classes = &builtin->classes;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = classes->arena;

    classes->arena = NULL;
    classes->is_asking = false;
    if (builtin->is_closing) {
        dv_builtin_part_closed(builtin);
        return;
    }
    for (size_t i = 0; failure && i < builtin->config->offers.n; i++) {
        const struct dv_offer *offer = &builtin->config->offers.v[i];

        if (request->verb == DV_VERB_PATCH && dv_str_eq(offer->class_name, request->name))
            set_problem(builtin, offer->name,
                        dv_str_to_c(dv_str_printf(arena, "class %.*s: %.*s", DV_FMT(request->name),
                                                  DV_FMT(failure->message)),
                                    arena));
    }
    /* A server's answer may come before the view shows what was done. */
    if (failure || builtin->options.cluster->is_embedded)
        dv_builtin_classes_look(builtin);
    else
        dv_timer_start(&classes->timer, builtin->loop, dv_loop_now_ms(builtin->loop) + SHOWN_MS,
                       on_shown);
}

static void ask(struct dv_builtin_driver *builtin, enum dv_verb verb, dv_str name,
                struct dv_arena *arena, const struct dv_json *patch)
{
    struct dv_builtin_classes *classes = &builtin->classes;

    classes->arena = arena;
    classes->is_asking = true;
    classes->request = (struct dv_request){
        .verb = verb,
        .kind = dv_kind(DV_KIND_CLASS),
        .name = dv_str_copy(name, arena),
        .patch_type = DV_PATCH_APPLY,
        .patch = patch,
        .field_manager = DV_STR(MANAGER),
        .is_forced = true,
        .done = on_done,
    };
    dv_request_start(builtin->options.cluster, &classes->request);
}

/* ---- the look ---- */

static const struct dv_offer *offer_of(const struct dv_builtin_driver *builtin,
                                       const struct dv_api_object_meta *meta)
{
    for (size_t i = 0; i < builtin->config->offers.n; i++) {
        const struct dv_offer *offer = &builtin->config->offers.v[i];

        if (dv_str_eq(offer->name, label_of(meta)) && dv_str_eq(offer->class_name, meta->name))
            return offer;
    }
    return NULL;
}

/* Removes one class that is ours and that no offer has any more. */
static bool remove_one(struct dv_builtin_driver *builtin)
{
    struct dv_object *object;

    if (!builtin->options.owns_classes)
        return false;
    for (size_t at = 0; (object = dv_view_next(builtin->classes.view, &at)) != NULL;)
        if (label_of(object->meta).n > 0 && !offer_of(builtin, object->meta)) {
            ask(builtin, DV_VERB_DELETE, object->meta->name, dv_arena_new(), NULL);
            return true;
        }
    return false;
}

/* Looks at the class of one offer; true: something is asked of the API. */
static bool look_at(struct dv_builtin_driver *builtin, const struct dv_offer *offer)
{
    struct dv_object *object = dv_view_get(builtin->classes.view, DV_STR_NONE, offer->class_name);
    struct dv_arena *arena = dv_arena_new();
    bool is_theirs = object && !dv_str_eq(label_of(object->meta), offer->name);
    bool is_good = object && is_as_wanted(object->value, offer, arena);

    if (is_theirs)
        set_problem(
            builtin, offer->name,
            dv_str_to_c(dv_str_printf(arena,
                                      "there is a DeviceClass %.*s already; name another one "
                                      "with class=",
                                      DV_FMT(offer->class_name)),
                        arena));
    else if (is_good)
        set_problem(builtin, offer->name, NULL);
    if (is_theirs || is_good || dv_builtin_class_problem(builtin, offer)) {
        dv_arena_free(arena);
        return false;
    }
    ask(builtin, DV_VERB_PATCH, offer->class_name, arena, class_json(offer, arena));
    return true;
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_builtin_driver *builtin =
        DV_CONTAINER(timer, struct dv_builtin_driver, classes.timer);

    clear_problems(builtin);
    dv_builtin_classes_look(builtin);
}

static void run_look(struct dv_task *task)
{
    struct dv_builtin_driver *builtin = DV_CONTAINER(task, struct dv_builtin_driver, classes.task);
    struct dv_builtin_classes *classes = &builtin->classes;
    bool has_problem = false;

    if (classes->is_asking || !classes->view || !dv_view_is_synced(classes->view))
        return;
    if (remove_one(builtin))
        return;
    for (size_t i = 0; i < builtin->config->offers.n; i++) {
        if (look_at(builtin, &builtin->config->offers.v[i]))
            return;
        has_problem =
            has_problem || dv_builtin_class_problem(builtin, &builtin->config->offers.v[i]);
    }
    if (has_problem && !dv_timer_is_set(&classes->timer))
        dv_timer_start(&classes->timer, builtin->loop, dv_loop_now_ms(builtin->loop) + AGAIN_MS,
                       on_timer);
}

void dv_builtin_classes_look(struct dv_builtin_driver *builtin)
{
    if (!builtin->is_closing)
        dv_task_post(&builtin->classes.task, builtin->loop, run_look);
}

/* ---- the view ---- */

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    (void)old;
    (void)now;
    dv_builtin_classes_look(ctx);
}

static void on_synced(void *ctx)
{
    dv_builtin_classes_look(ctx);
}

void dv_builtin_classes_open(struct dv_builtin_driver *builtin)
{
    const struct dv_view_options options = {
        .kind = dv_kind(DV_KIND_CLASS),
        .changed = on_changed,
        .synced = on_synced,
        .ctx = builtin,
        .is_optional = true,
    };
    struct dv_err err;

    dv_map_init(&builtin->classes.problems);
    builtin->classes.view = dv_view_open(builtin->options.cluster, &options, &err);
    if (!builtin->classes.view)
        dv_log(DV_LOG_ERROR, "builtin: classes are not made", DV_F_ERR(&err));
}

void dv_builtin_classes_close(struct dv_builtin_driver *builtin)
{
    struct dv_builtin_classes *classes = &builtin->classes;

    dv_task_cancel(&classes->task);
    dv_timer_cancel(&classes->timer);
    if (classes->view)
        dv_view_close(classes->view);
    classes->view = NULL;
    if (classes->is_asking) {
        builtin->n_open++;
        dv_request_cancel(builtin->options.cluster, &classes->request);
    }
    clear_problems(builtin);
    dv_map_fini(&classes->problems);
}
