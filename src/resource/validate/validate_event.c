/* validate_event.c - events, which are in two groups with different demands. */
#include "resource/validate/validate_kinds.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

#define WORD_BYTES_MAX 128u
#define NOTE_BYTES_MAX 1024u

static void check_length(struct dv_problems *problems, const char *name, dv_str text, size_t max)
{
    if (text.n > max)
        dv_problem_add(problems, DV_PROBLEM_INVALID, NULL, name, dv_bad_str(DV_STR("")),
                       "can have at most %zu characters", max);
}

static void check_word(struct dv_problems *problems, const char *name, dv_str text)
{
    if (text.n == 0)
        dv_required(problems, NULL, name);
    check_length(problems, name, text, WORD_BYTES_MAX);
}

static void add_wrong_namespace(struct dv_problems *problems, const struct dv_api_event *event)
{
    struct dv_field_path path = dv_path_name(NULL, "involvedObject");

    dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "namespace",
                   dv_bad_str(event->involved_object.namespace), "does not match event.namespace");
}

/* Events about objects without a namespace are in the default one. */
static void check_namespace(struct dv_problems *problems, const struct dv_api_event *event)
{
    dv_str own = event->metadata.namespace;
    dv_str subject = event->involved_object.namespace;
    bool is_default = own.n == 0 || dv_str_eq(own, DV_STR("default"));

    if (event->event_time.is_set) {
        if (subject.n == 0 && !dv_str_eq(own, DV_STR("default")) &&
            !dv_str_eq(own, DV_STR("kube-system")))
            add_wrong_namespace(problems, event);
    } else if (subject.n == 0 ? !is_default : !dv_str_eq(own, subject)) {
        add_wrong_namespace(problems, event);
    }
}

static void check_reporter(struct dv_problems *problems, const struct dv_api_event *event,
                           const char *controller)
{
    if (event->reporting_component.n == 0)
        dv_required(problems, NULL, controller);
    dv_check_label_name(problems, NULL, controller, event->reporting_component);
    check_word(problems, "reportingInstance", event->reporting_instance);
    check_word(problems, "action", event->action);
    check_word(problems, "reason", event->reason);
    check_length(problems, "message", event->message, NOTE_BYTES_MAX);
}

static void check_old_fields(struct dv_problems *problems, const struct dv_api_event *event)
{
    const struct {
        const char *name;
        bool is_set;
    } fields[] = {
        {"firstTimestamp", event->first_timestamp.is_set                            },
        {"lastTimestamp",  event->last_timestamp.is_set                             },
        {"count",          event->count != 0                                        },
        {"source",         event->source.component.n > 0 || event->source.host.n > 0},
    };

    for (size_t i = 0; i < DV_COUNT(fields); i++)
        if (fields[i].is_set)
            dv_problem_add(problems, DV_PROBLEM_INVALID, NULL, fields[i].name,
                           dv_bad_str(DV_STR("")), "needs to be unset");
}

static void check_new(struct dv_problems *problems, const struct dv_api_event *event)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};

    dv_check_meta(problems, &event->metadata, &rules);
    if (!event->event_time.is_set)
        dv_required(problems, NULL, "eventTime");
    if (!dv_str_eq(event->type, DV_STR("Normal")) && !dv_str_eq(event->type, DV_STR("Warning")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, NULL, "type", dv_bad_str(DV_STR("")),
                       "has invalid value: %.*s", DV_FMT(event->type));
    check_old_fields(problems, event);
}

static void check_series(struct dv_problems *problems, const struct dv_api_event *event)
{
    struct dv_field_path path = dv_path_name(NULL, "series");

    if (!event->series)
        return;
    if (event->series->count < 2)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "count", dv_bad_str(DV_STR("")),
                       "should be at least 2");
    if (!event->series->last_observed_time.is_set)
        dv_required(problems, &path, "lastObservedTime");
}

static bool has_same_series(const struct dv_api_event *a, const struct dv_api_event *b)
{
    return a->series && b->series ? dv_message_eq(&dv_message_event_series, a->series, b->series)
                                  : a->series == b->series;
}

static bool has_same_related(const struct dv_api_event *a, const struct dv_api_event *b)
{
    return a->related && b->related
               ? dv_message_eq(&dv_message_object_reference, a->related, b->related)
               : a->related == b->related;
}

/* In the newer group only the series may change. */
static void check_fixed(struct dv_problems *problems, const struct dv_api_event *event,
                        const struct dv_api_event *old)
{
    const struct {
        const char *name;
        dv_str value;
        dv_str old;
    } texts[] = {
        {"reason",              event->reason,              old->reason             },
        {"message",             event->message,             old->message            },
        {"type",                event->type,                old->type               },
        {"action",              event->action,              old->action             },
        {"reportingController", event->reporting_component, old->reporting_component},
        {"reportingInstance",   event->reporting_instance,  old->reporting_instance },
    };

    if (!dv_message_eq(&dv_message_object_reference, &event->involved_object,
                       &old->involved_object))
        dv_immutable(
            problems, NULL, "involvedObject",
            dv_bad_message(&dv_message_object_reference, &event->involved_object, problems->arena));
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        if (!dv_str_eq(texts[i].value, texts[i].old))
            dv_immutable(problems, NULL, texts[i].name, dv_bad_str(texts[i].value));
    if (event->count != old->count)
        dv_immutable(problems, NULL, "count", dv_bad_i64(event->count));
    if (!has_same_related(event, old))
        dv_immutable(problems, NULL, "related",
                     event->related ? dv_bad_message(&dv_message_object_reference, event->related,
                                                     problems->arena)
                                    : dv_bad_null());
}

static void check_common(struct dv_problems *problems, const struct dv_api_event *event,
                         bool is_new)
{
    check_namespace(problems, event);
    if (event->event_time.is_set)
        check_reporter(problems, event, is_new ? "reportingController" : "reportingComponent");
    dv_check_dns_subdomain(problems, NULL, "namespace", event->metadata.namespace);
}

void dv_validate_event(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_event *event = what->value;
    const struct dv_api_event *old = what->old;
    bool is_new = what->version && what->version->group.n > 0;

    check_common(problems, event, is_new);
    if (!is_new)
        return; /* the older group of events accepts nearly everything */
    if (!old) {
        check_new(problems, event);
        check_series(problems, event);
        return;
    }
    if (!has_same_series(event, old))
        check_series(problems, event);
    dv_check_kind_meta_update(problems, &event->metadata, &old->metadata);
    check_fixed(problems, event, old);
}
