/* pod_security.c - the standards `baseline` and `restricted`, in the reference's words and its
 * order: by the names of the checks, those of baseline first. Where an older version of a standard
 * is named, the checks that came later are left out. */
#include "resource/pod_security.h"

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/vec.h"
#include "resource/prepare/pod_security_checks.h"
#include "resource/resource.h"

#define TEXT_BYTES_MAX (64u * 1024u)
/* So many names are told at most, and so many values: a pod may have a hundred thousand. */
#define TEXTS_MAX 100u

/* ---- words ---- */

void dv_texts_add(struct dv_texts *list, dv_str text, struct dv_arena *arena)
{
    if (list->n < TEXTS_MAX)
        *dv_vec_add_in(list, arena) = text;
}

void dv_texts_add_sorted(struct dv_texts *list, dv_str text, struct dv_arena *arena)
{
    size_t at = 0;

    while (at < list->n && dv_str_cmp(list->v[at], text) < 0)
        at++;
    if ((at < list->n && dv_str_eq(list->v[at], text)) || list->n >= TEXTS_MAX)
        return;
    dv_texts_add(list, text, arena);
    for (size_t i = list->n - 1; i > at; i--)
        list->v[i] = list->v[i - 1];
    list->v[at] = text;
}

dv_str dv_texts_quote(const struct dv_texts *list, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < list->n; i++)
        dv_buf_printf(&buf, "%s\"%.*s\"", i > 0 ? ", " : "", DV_FMT(list->v[i]));
    return dv_str_copy(dv_buf_str(&buf), arena);
}

dv_str dv_texts_join(const struct dv_texts *list, const char *between, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < list->n; i++)
        dv_buf_printf(&buf, "%s%.*s", i > 0 ? between : "", DV_FMT(list->v[i]));
    return dv_str_copy(dv_buf_str(&buf), arena);
}

dv_str dv_texts_name(const char *noun, const struct dv_texts *names, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%s%s %.*s", noun, names->n == 1 ? "" : "s",
                         DV_FMT(dv_texts_quote(names, arena)));
}

dv_str dv_pod_setters(bool is_pod, const struct dv_texts *names, struct dv_arena *arena)
{
    struct dv_texts all = {0};

    if (is_pod)
        dv_texts_add(&all, DV_STR("pod"), arena);
    if (names->n > 0)
        dv_texts_add(&all, dv_texts_name("container", names, arena), arena);
    return dv_texts_join(&all, " and ", arena);
}

void dv_pod_forbid(struct dv_pod_check *pod, const char *reason, dv_str detail)
{
    dv_buf_printf(pod->found, "%s%s", pod->n_found++ > 0 ? ", " : "", reason);
    if (detail.n > 0)
        dv_buf_printf(pod->found, " (%.*s)", DV_FMT(detail));
}

struct dv_texts dv_pod_containers_that(const struct dv_pod_check *pod,
                                       bool (*is_so)(const struct dv_api_security_context *context))
{
    struct dv_texts names = {0};

    for (size_t i = 0; i < pod->containers.n; i++)
        if (is_so(pod->containers.v[i]->security_context))
            dv_texts_add(&names, pod->containers.v[i]->name, pod->arena);
    return names;
}

/* ---- levels ---- */

/* In their order; `since` is the minor version of Kubernetes that had it first. One that is not
 * wanted for restricted has another there in its place. */
static const struct {
    void (*run)(struct dv_pod_check *pod);
    int64_t since;
    bool is_baseline, is_restricted;
} checks[] = {
    {dv_pod_check_app_armor,       0,  true,  true },
    {dv_pod_check_capabilities,    0,  true,  false},
    {dv_pod_check_host_namespaces, 0,  true,  true },
    {dv_pod_check_host_paths,      0,  true,  false},
    {dv_pod_check_host_ports,      0,  true,  true },
    {dv_pod_check_hosts,           34, true,  true },
    {dv_pod_check_privileged,      0,  true,  true },
    {dv_pod_check_proc_mount,      0,  true,  true },
    {dv_pod_check_se_linux,        0,  true,  true },
    {dv_pod_check_seccomp,         19, true,  false},
    {dv_pod_check_sysctls,         0,  true,  true },
    {dv_pod_check_host_process,    0,  true,  true },
    {dv_pod_check_escalation,      8,  false, true },
    {dv_pod_check_dropped,         22, false, true },
    {dv_pod_check_volumes,         0,  false, true },
    {dv_pod_check_non_root,        0,  false, true },
    {dv_pod_check_user,            23, false, true },
    {dv_pod_check_seccomp_is_set,  19, false, true },
};

static void find_containers(struct dv_pod_check *pod)
{
    const struct dv_api_pod_spec *spec = pod->spec;

    for (size_t i = 0; i < spec->n_init_containers; i++)
        *dv_vec_add_in(&pod->containers, pod->arena) = &spec->init_containers[i];
    for (size_t i = 0; i < spec->n_containers; i++)
        *dv_vec_add_in(&pod->containers, pod->arena) = &spec->containers[i];
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        *dv_vec_add_in(&pod->containers, pod->arena) =
            &spec->ephemeral_containers[i].ephemeral_container_common;
}

bool dv_pod_security_is_level(dv_str text)
{
    return dv_str_eq(text, DV_STR("privileged")) || dv_str_eq(text, DV_STR("baseline")) ||
           dv_str_eq(text, DV_STR("restricted"));
}

bool dv_pod_security_version(dv_str text, int64_t *minor)
{
    uint64_t number;

    *minor = INT64_MAX;
    if (dv_str_eq(text, DV_STR("latest")))
        return true;
    if (!dv_str_starts_with(text, DV_STR("v1.")) ||
        !dv_str_to_u64(dv_str_slice(text, 3, text.n), &number) || number > INT32_MAX)
        return false;
    *minor = (int64_t)number;
    return true;
}

static const char *const level_labels[] = {
    [DV_POD_SECURITY_ENFORCE] = "pod-security.kubernetes.io/enforce",
    [DV_POD_SECURITY_WARN] = "pod-security.kubernetes.io/warn",
};
static const char *const version_labels[] = {
    [DV_POD_SECURITY_ENFORCE] = "pod-security.kubernetes.io/enforce-version",
    [DV_POD_SECURITY_WARN] = "pod-security.kubernetes.io/warn-version",
};

static dv_str label_of(const struct dv_api_object_meta *meta, const char *name)
{
    const struct dv_str_entry *entry =
        meta ? dv_entry_find(meta->labels, meta->n_labels, dv_str_from_c(name)) : NULL;

    return entry ? entry->value : DV_STR_NONE;
}

dv_str dv_pod_security_violations(const struct dv_api_object_meta *namespace,
                                  enum dv_pod_security_mode mode,
                                  const struct dv_api_object_meta *meta,
                                  const struct dv_api_pod_spec *spec, struct dv_arena *arena)
{
    dv_str level = label_of(namespace, level_labels[mode]);
    dv_str version = label_of(namespace, version_labels[mode]);
    bool is_restricted = dv_str_eq(level, DV_STR("restricted"));
    DV_CLEANUP(dv_buf_fini) struct dv_buf found;
    struct dv_pod_check pod = {.meta = meta, .spec = spec, .arena = arena, .found = &found};
    int64_t minor;

    dv_buf_init(&found, TEXT_BYTES_MAX);
    if (!is_restricted && !dv_str_eq(level, DV_STR("baseline")))
        return DV_STR_NONE;
    if (!dv_pod_security_version(version, &minor))
        version = DV_STR("latest");
    find_containers(&pod);
    pod.is_windows = spec->os && dv_str_eq(spec->os->name, DV_STR("windows"));
    dv_buf_printf(&found, "PodSecurity \"%.*s:%.*s\": ", DV_FMT(level), DV_FMT(version));
    for (size_t i = 0; i < DV_COUNT(checks); i++)
        if ((is_restricted ? checks[i].is_restricted : checks[i].is_baseline) &&
            minor >= checks[i].since)
            checks[i].run(&pod);
    return pod.n_found > 0 ? dv_str_copy(dv_buf_str(&found), arena) : DV_STR_NONE;
}

const struct dv_api_pod_template_spec *dv_pod_template_of(const struct dv_kind *kind,
                                                          const void *value)
{
    if (kind->id == DV_KIND_DAEMON_SET)
        return &((const struct dv_api_daemon_set *)value)->spec.template;
    if (kind->id == DV_KIND_DEPLOYMENT)
        return &((const struct dv_api_deployment *)value)->spec.template;
    if (kind->id == DV_KIND_REPLICA_SET)
        return &((const struct dv_api_replica_set *)value)->spec.template;
    if (kind->id == DV_KIND_JOB)
        return &((const struct dv_api_job *)value)->spec.template;
    return NULL;
}
