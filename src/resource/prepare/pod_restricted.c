/* pod_restricted.c - what the standard `restricted` forbids beside: what a careful pod does
 * without. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/prepare/pod_security_checks.h"
#include "resource/resource.h"

static bool may_escalate(const struct dv_api_security_context *context)
{
    return !context || !context->allow_privilege_escalation || *context->allow_privilege_escalation;
}

void dv_pod_check_escalation(struct dv_pod_check *pod)
{
    struct dv_texts names = dv_pod_containers_that(pod, may_escalate);

    if (names.n > 0 && !pod->is_windows)
        dv_pod_forbid(pod, "allowPrivilegeEscalation != false",
                      dv_str_printf(pod->arena,
                                    "%.*s must set securityContext.allowPrivilegeEscalation=false",
                                    DV_FMT(dv_texts_name("container", &names, pod->arena))));
}

static bool keeps_capabilities(const struct dv_api_security_context *context)
{
    const struct dv_api_capabilities *own = context ? context->capabilities : NULL;

    for (size_t i = 0; own && i < own->n_drop; i++)
        if (dv_str_eq(own->drop[i], DV_STR("ALL")))
            return false;
    return true;
}

void dv_pod_check_dropped(struct dv_pod_check *pod)
{
    static const dv_str allowed[] = {DV_STR_INIT("NET_BIND_SERVICE")};
    struct dv_texts keeping = dv_pod_containers_that(pod, keeps_capabilities);
    struct dv_texts names = {0};
    struct dv_texts added = {0};
    struct dv_texts all = {0};

    if (pod->is_windows)
        return;
    dv_pod_find_added(pod, allowed, DV_COUNT(allowed), &names, &added);
    if (keeping.n > 0)
        dv_texts_add(&all,
                     dv_str_printf(pod->arena,
                                   "%.*s must set securityContext.capabilities.drop=[\"ALL\"]",
                                   DV_FMT(dv_texts_name("container", &keeping, pod->arena))),
                     pod->arena);
    if (names.n > 0)
        dv_texts_add(&all, dv_pod_added_text(pod, &names, &added), pod->arena);
    if (all.n > 0)
        dv_pod_forbid(pod, "unrestricted capabilities", dv_texts_join(&all, "; ", pod->arena));
}

/* The kind of a volume as its field is called; empty: one that anybody may have. */
static dv_str restricted_type(const struct dv_api_volume_source *source)
{
    static const char *const free_ones[] = {"configMap", "csi",       "downwardAPI",
                                            "emptyDir",  "ephemeral", "persistentVolumeClaim",
                                            "projected", "secret"};
    const struct dv_message *message = &dv_message_volume_source;

    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];
        const void *const *at = (const void *const *)((const char *)source + field->offset);
        bool is_free = false;

        if (!*at)
            continue;
        for (size_t k = 0; k < DV_COUNT(free_ones); k++)
            is_free |= dv_str_eq(field->name, dv_str_from_c(free_ones[k]));
        return is_free ? DV_STR_NONE : field->name;
    }
    return DV_STR_NONE;
}

void dv_pod_check_volumes(struct dv_pod_check *pod)
{
    struct dv_texts names = {0};
    struct dv_texts types = {0};

    for (size_t i = 0; i < pod->spec->n_volumes; i++) {
        dv_str type = restricted_type(&pod->spec->volumes[i].volume_source);

        if (type.n == 0)
            continue;
        dv_texts_add(&names, pod->spec->volumes[i].name, pod->arena);
        dv_texts_add_sorted(&types, type, pod->arena);
    }
    if (names.n > 0)
        dv_pod_forbid(pod, "restricted volume types",
                      dv_str_printf(pod->arena, "%.*s %s restricted %.*s",
                                    DV_FMT(dv_texts_name("volume", &names, pod->arena)),
                                    names.n == 1 ? "uses" : "use",
                                    DV_FMT(dv_texts_name("volume type", &types, pod->arena))));
}

static bool runs_as_root(const struct dv_api_security_context *context)
{
    return context && context->run_as_non_root && !*context->run_as_non_root;
}

static bool leaves_root(const struct dv_api_security_context *context)
{
    return !context || !context->run_as_non_root;
}

void dv_pod_check_non_root(struct dv_pod_check *pod)
{
    const struct dv_api_pod_security_context *context = pod->spec->security_context;
    const bool *own = context ? context->run_as_non_root : NULL;
    struct dv_texts bad = dv_pod_containers_that(pod, runs_as_root);
    struct dv_texts silent = dv_pod_containers_that(pod, leaves_root);
    bool is_pod = own && !*own;

    if (is_pod || bad.n > 0)
        dv_pod_forbid(pod, "runAsNonRoot != true",
                      dv_str_printf(pod->arena,
                                    "%.*s must not set securityContext.runAsNonRoot=false",
                                    DV_FMT(dv_pod_setters(is_pod, &bad, pod->arena))));
    else if (silent.n > 0 && !own)
        dv_pod_forbid(pod, "runAsNonRoot != true",
                      dv_str_printf(pod->arena,
                                    "pod or %.*s must set securityContext.runAsNonRoot=true",
                                    DV_FMT(dv_texts_name("container", &silent, pod->arena))));
}

static bool is_root(const struct dv_api_security_context *context)
{
    return context && context->run_as_user && *context->run_as_user == 0;
}

void dv_pod_check_user(struct dv_pod_check *pod)
{
    const struct dv_api_pod_security_context *context = pod->spec->security_context;
    bool is_pod = context && context->run_as_user && *context->run_as_user == 0;
    struct dv_texts names = dv_pod_containers_that(pod, is_root);

    if (is_pod || names.n > 0)
        dv_pod_forbid(pod, "runAsUser=0",
                      dv_str_printf(pod->arena, "%.*s must not set runAsUser=0",
                                    DV_FMT(dv_pod_setters(is_pod, &names, pod->arena))));
}

static bool has_no_seccomp(const struct dv_api_security_context *context)
{
    return !context || !context->seccomp_profile;
}

void dv_pod_check_seccomp_is_set(struct dv_pod_check *pod)
{
    const struct dv_api_pod_security_context *context = pod->spec->security_context;
    struct dv_texts names = dv_pod_containers_that(pod, has_no_seccomp);

    if (pod->is_windows || dv_pod_find_seccomp(pod) || names.n == 0 ||
        (context && context->seccomp_profile))
        return;
    dv_pod_forbid(pod, "seccompProfile",
                  dv_str_printf(pod->arena,
                                "pod or %.*s must set securityContext.seccompProfile.type to "
                                "\"RuntimeDefault\" or \"Localhost\"",
                                DV_FMT(dv_texts_name("container", &names, pod->arena))));
}
