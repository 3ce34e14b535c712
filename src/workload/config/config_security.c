/* config_security.c - a container's user, groups, capabilities and profiles. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"
#include "workload/workload.h"

/* What no container sees of the host's /proc and /sys, and what it cannot write there. */
static const dv_str masked_paths[] = {
    DV_STR_INIT("/proc/asound"),      DV_STR_INIT("/proc/acpi"),
    DV_STR_INIT("/proc/interrupts"),  DV_STR_INIT("/proc/kcore"),
    DV_STR_INIT("/proc/keys"),        DV_STR_INIT("/proc/latency_stats"),
    DV_STR_INIT("/proc/timer_list"),  DV_STR_INIT("/proc/timer_stats"),
    DV_STR_INIT("/proc/sched_debug"), DV_STR_INIT("/proc/scsi"),
    DV_STR_INIT("/sys/firmware"),     DV_STR_INIT("/sys/devices/virtual/powercap"),
};
static const dv_str readonly_paths[] = {
    DV_STR_INIT("/proc/bus"),           DV_STR_INIT("/proc/fs"),
    DV_STR_INIT("/proc/irq"),           DV_STR_INIT("/proc/sys"),
    DV_STR_INIT("/proc/sysrq-trigger"),
};

#define APPARMOR_ANNOTATION "container.apparmor.security.beta.kubernetes.io/"
#define LOCALHOST DV_STR("localhost/")

/* ---- the effective context: the pod's, and the container's where it says something ---- */

static const struct dv_api_pod_security_context *of_pod(const struct dv_config_input *input)
{
    static const struct dv_api_pod_security_context none;

    return input->pod->pod->spec.security_context ? input->pod->pod->spec.security_context : &none;
}

static const struct dv_api_security_context *of_container(const struct dv_config_input *input)
{
    static const struct dv_api_security_context none;

    return input->container->security_context ? input->container->security_context : &none;
}

static const int64_t *effective_user(const struct dv_config_input *input)
{
    const struct dv_api_security_context *own = of_container(input);

    return own->run_as_user ? own->run_as_user : of_pod(input)->run_as_user;
}

bool dv_config_check_user(const struct dv_config_input *input, struct dv_arena *arena,
                          struct dv_err *err)
{
    const struct dv_api_security_context *own = of_container(input);
    const bool *must_not =
        own->run_as_non_root ? own->run_as_non_root : of_pod(input)->run_as_non_root;
    const int64_t *user = effective_user(input);
    const struct dv_config_image *image = &input->image;
    dv_str name = input->container->name;
    dv_str pod;

    if (!must_not || !*must_not)
        return true;
    pod = dv_config_pod_name(input->pod, arena);
    if (user)
        return *user != 0 ||
               dv_fail(err, DV_FAILED_PRECONDITION,
                       "container's runAsUser breaks non-root policy (pod: \"%.*s\", container: "
                       "%.*s)",
                       DV_FMT(pod), DV_FMT(name));
    if (!image->has_uid && image->username.n > 0)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "container has runAsNonRoot and image has non-numeric user (%.*s), cannot "
                       "verify user is non-root (pod: \"%.*s\", container: %.*s)",
                       DV_FMT(image->username), DV_FMT(pod), DV_FMT(name));
    if (!image->has_uid || image->uid == 0) /* an image that says nothing runs as root */
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "container has runAsNonRoot and image will run as root (pod: \"%.*s\", "
                       "container: %.*s)",
                       DV_FMT(pod), DV_FMT(name));
    if (image->uid < 0 || image->uid > INT32_MAX)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "container has runAsNonRoot and image has an invalid user id (%lld). (Must "
                       "be 1-(%d)): must be between 0 and %d, inclusive (pod: \"%.*s\", container: "
                       "%.*s)",
                       (long long)image->uid, INT32_MAX, INT32_MAX, DV_FMT(pod), DV_FMT(name));
    return true;
}

/* ---- namespaces ---- */

static CriV1__IDMapping **map_users(const struct dv_workload_pod *pod, struct dv_arena *arena)
{
    CriV1__IDMapping **list = DV_NEW_ARRAY(arena, CriV1__IDMapping *, 1);

    list[0] = DV_NEW(arena, CriV1__IDMapping);
    *list[0] = (CriV1__IDMapping)CRI_V1__IDMAPPING__INIT;
    list[0]->host_id = pod->users_from;
    list[0]->length = pod->n_users;
    return list;
}

/* Whether the runtime can give the pod users of its own, and has some for it. */
static bool check_users(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                        struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_workload_handler *handler = dv_workload_handler_find(node, pod->handler);
    dv_str who = DV_STR("runtime");
    dv_str why = DV_STR("");

    if (handler && handler->has_user_namespaces)
        return pod->n_users > 0 ||
               dv_fail(err, DV_UNIMPLEMENTED,
                       "can't set `spec.hostUsers: false`, no users of the host are set aside");
    if (pod->handler.n > 0)
        who = dv_str_printf(arena, "RuntimeClass handler \"%.*s\"", DV_FMT(pod->handler));
    if (node->n_handlers == 0)
        why = DV_STR(": runtime handlers are not set");
    else if (!handler)
        why = dv_str_printf(arena, ": the handler \"%.*s\" is not known", DV_FMT(pod->handler));
    return dv_fail(err, DV_FAILED_PRECONDITION,
                   "can't set `spec.hostUsers: false`, %.*s does not support user namespaces%.*s",
                   DV_FMT(who), DV_FMT(why));
}

CriV1__NamespaceOption *dv_config_namespaces(const struct dv_workload_node *node,
                                             const struct dv_workload_pod *pod,
                                             struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;
    bool has_own_users = spec->host_users && !*spec->host_users;
    CriV1__NamespaceOption *made = DV_NEW(arena, CriV1__NamespaceOption);

    *made = (CriV1__NamespaceOption)CRI_V1__NAMESPACE_OPTION__INIT;
    made->network = spec->host_network ? CRI_V1__NAMESPACE_MODE__NODE : CRI_V1__NAMESPACE_MODE__POD;
    made->ipc = spec->host_ipc ? CRI_V1__NAMESPACE_MODE__NODE : CRI_V1__NAMESPACE_MODE__POD;
    if (spec->host_pid)
        made->pid = CRI_V1__NAMESPACE_MODE__NODE;
    else if (spec->share_process_namespace && *spec->share_process_namespace)
        made->pid = CRI_V1__NAMESPACE_MODE__POD;
    else
        made->pid = CRI_V1__NAMESPACE_MODE__CONTAINER;
    made->userns_options = DV_NEW(arena, CriV1__UserNamespace);
    *made->userns_options = (CriV1__UserNamespace)CRI_V1__USER_NAMESPACE__INIT;
    made->userns_options->mode = CRI_V1__NAMESPACE_MODE__NODE;
    if (has_own_users) {
        if (!check_users(node, pod, arena, err))
            return NULL;
        made->userns_options->mode = CRI_V1__NAMESPACE_MODE__POD;
        made->userns_options->n_uids = 1;
        made->userns_options->uids = map_users(pod, arena);
        made->userns_options->n_gids = 1;
        made->userns_options->gids = map_users(pod, arena);
    }
    return made;
}

CriV1__SELinuxOption *dv_config_selinux(const struct dv_api_se_linux_options *options,
                                        struct dv_arena *arena)
{
    CriV1__SELinuxOption *made;

    if (!options)
        return NULL;
    made = DV_NEW(arena, CriV1__SELinuxOption);
    *made = (CriV1__SELinuxOption)CRI_V1__SELINUX_OPTION__INIT;
    made->user = dv_str_to_c(options->user, arena);
    made->role = dv_str_to_c(options->role, arena);
    made->type = dv_str_to_c(options->type, arena);
    made->level = dv_str_to_c(options->level, arena);
    return made;
}

/* ---- groups ---- */

int64_t *dv_config_groups(const struct dv_api_pod *pod, struct dv_arena *arena, size_t *n)
{
    const struct dv_api_pod_security_context *context = pod->spec.security_context;
    int64_t *groups;
    size_t at = 0;

    if (!context) {
        *n = 0;
        return NULL;
    }
    groups = DV_NEW_ARRAY(arena, int64_t, context->n_supplemental_groups + 1);
    if (context->fs_group)
        groups[at++] = *context->fs_group;
    for (size_t i = 0; i < context->n_supplemental_groups; i++)
        groups[at++] = context->supplemental_groups[i];
    *n = at;
    return groups;
}

bool dv_config_groups_policy(const struct dv_api_pod *pod, int *policy, struct dv_err *err)
{
    const struct dv_api_pod_security_context *context = pod->spec.security_context;
    dv_str text = context ? context->supplemental_groups_policy : DV_STR_NONE;

    if (text.n == 0 || dv_str_eq(text, DV_STR("Merge")))
        *policy = CRI_V1__SUPPLEMENTAL_GROUPS_POLICY__Merge;
    else if (dv_str_eq(text, DV_STR("Strict")))
        *policy = CRI_V1__SUPPLEMENTAL_GROUPS_POLICY__Strict;
    else
        return dv_fail(err, DV_INVALID_ARGUMENT, "unsupported supplementalGroupsPolicy: %.*s",
                       DV_FMT(text));
    return true;
}

/* ---- profiles ---- */

static CriV1__SecurityProfile *new_profile(CriV1__SecurityProfile__ProfileType type, dv_str ref,
                                           struct dv_arena *arena)
{
    CriV1__SecurityProfile *made = DV_NEW(arena, CriV1__SecurityProfile);

    *made = (CriV1__SecurityProfile)CRI_V1__SECURITY_PROFILE__INIT;
    made->profile_type = type;
    made->localhost_ref = dv_str_to_c(ref, arena);
    return made;
}

static CriV1__SecurityProfile *seccomp(const struct dv_config_input *input, struct dv_arena *arena,
                                       struct dv_err *err)
{
    const struct dv_api_seccomp_profile *own = of_container(input)->seccomp_profile;
    const struct dv_api_seccomp_profile *profile = own ? own : of_pod(input)->seccomp_profile;

    if (profile && dv_str_eq(profile->type, DV_STR("RuntimeDefault")))
        return new_profile(CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault, DV_STR(""),
                           arena);
    if (!profile || !dv_str_eq(profile->type, DV_STR("Localhost")))
        return new_profile(CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Unconfined, DV_STR(""), arena);
    if (profile->localhost_profile.n == 0) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT,
                      "localhostProfile must be set if seccompProfile type is Localhost.");
        return NULL;
    }
    return new_profile(
        CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost,
        dv_path_clean(dv_str_printf(arena, "%.*s/seccomp/%.*s", DV_FMT(input->node->root_dir),
                                    DV_FMT(profile->localhost_profile)),
                      arena),
        arena);
}

/* Reads the profile that an annotation names: how it was written before there was a field. */
static const struct dv_api_app_armor_profile *annotated(const struct dv_config_input *input,
                                                        struct dv_arena *arena)
{
    const struct dv_api_object_meta *meta = &input->pod->pod->metadata;
    dv_str key = dv_str_printf(arena, APPARMOR_ANNOTATION "%.*s", DV_FMT(input->container->name));
    const struct dv_str_entry *found = dv_entry_find(meta->annotations, meta->n_annotations, key);
    struct dv_api_app_armor_profile *profile;

    if (!found)
        return NULL;
    profile = DV_NEW(arena, struct dv_api_app_armor_profile);
    if (dv_str_eq(found->value, DV_STR("runtime/default"))) {
        profile->type = DV_STR("RuntimeDefault");
    } else if (dv_str_eq(found->value, DV_STR("unconfined"))) {
        profile->type = DV_STR("Unconfined");
    } else if (dv_str_starts_with(found->value, LOCALHOST)) {
        profile->type = DV_STR("Localhost");
        profile->localhost_profile = dv_str_slice(found->value, LOCALHOST.n, found->value.n);
    } else {
        return NULL;
    }
    return profile;
}

/* Says it twice: older runtimes only know the text. */
static bool set_apparmor(const struct dv_config_input *input,
                         CriV1__LinuxContainerSecurityContext *made, struct dv_arena *arena,
                         struct dv_err *err)
{
    const struct dv_api_app_armor_profile *profile = of_container(input)->app_armor_profile;

    profile = profile ? profile : annotated(input, arena);
    profile = profile ? profile : of_pod(input)->app_armor_profile;
    if (!profile)
        return true;
    if (dv_str_eq(profile->type, DV_STR("RuntimeDefault"))) {
        made->apparmor =
            new_profile(CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault, DV_STR(""), arena);
        made->apparmor_profile = "runtime/default";
    } else if (dv_str_eq(profile->type, DV_STR("Unconfined"))) {
        made->apparmor =
            new_profile(CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Unconfined, DV_STR(""), arena);
        made->apparmor_profile = "unconfined";
    } else if (!dv_str_eq(profile->type, DV_STR("Localhost"))) {
        return dv_fail(err, DV_INVALID_ARGUMENT, "unknown apparmor profile type: \"%.*s\"",
                       DV_FMT(profile->type));
    } else if (!profile->localhost_profile.p) {
        return dv_fail(err, DV_INVALID_ARGUMENT, "missing localhost apparmor profile name");
    } else {
        made->apparmor = new_profile(CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost,
                                     profile->localhost_profile, arena);
        made->apparmor_profile =
            dv_str_printf(arena, "localhost/%.*s", DV_FMT(profile->localhost_profile)).p;
    }
    return true;
}

/* ---- the message ---- */

static CriV1__Int64Value *new_number(int64_t value, struct dv_arena *arena)
{
    CriV1__Int64Value *made = DV_NEW(arena, CriV1__Int64Value);

    *made = (CriV1__Int64Value)CRI_V1__INT64_VALUE__INIT;
    made->value = value;
    return made;
}

static void set_user(const struct dv_config_input *input,
                     CriV1__LinuxContainerSecurityContext *made, struct dv_arena *arena)
{
    const struct dv_api_security_context *own = of_container(input);
    const int64_t *user = effective_user(input);
    const int64_t *group = own->run_as_group ? own->run_as_group : of_pod(input)->run_as_group;

    if (user)
        made->run_as_user = new_number(*user, arena);
    else if (input->image.has_uid)
        made->run_as_user = new_number(input->image.uid, arena);
    else if (input->image.username.n > 0)
        made->run_as_username = dv_str_to_c(input->image.username, arena);
    else
        made->run_as_user = new_number(0, arena);
    if (group)
        made->run_as_group = new_number(*group, arena);
}

static void set_capabilities(const struct dv_api_capabilities *from,
                             CriV1__LinuxContainerSecurityContext *made, struct dv_arena *arena)
{
    if (!from)
        return;
    made->capabilities = DV_NEW(arena, CriV1__Capability);
    *made->capabilities = (CriV1__Capability)CRI_V1__CAPABILITY__INIT;
    made->capabilities->n_add_capabilities = from->n_add;
    made->capabilities->add_capabilities = dv_config_texts(from->add, from->n_add, arena);
    made->capabilities->n_drop_capabilities = from->n_drop;
    made->capabilities->drop_capabilities = dv_config_texts(from->drop, from->n_drop, arena);
}

static void set_paths(const struct dv_config_input *input,
                      CriV1__LinuxContainerSecurityContext *made, struct dv_arena *arena)
{
    const struct dv_strs *more = &input->node->masked_paths;

    if (dv_str_eq(of_container(input)->proc_mount, DV_STR("Unmasked")))
        return;
    made->n_masked_paths = DV_COUNT(masked_paths) + more->n;
    made->masked_paths = DV_NEW_ARRAY(arena, const char *, made->n_masked_paths);
    for (size_t i = 0; i < DV_COUNT(masked_paths); i++)
        made->masked_paths[i] = masked_paths[i].p;
    for (size_t i = 0; i < more->n; i++)
        made->masked_paths[DV_COUNT(masked_paths) + i] = dv_str_to_c(more->v[i], arena);
    made->n_readonly_paths = DV_COUNT(readonly_paths);
    made->readonly_paths = dv_config_texts(readonly_paths, DV_COUNT(readonly_paths), arena);
}

static bool is_set(const bool *flag)
{
    return flag && *flag;
}

CriV1__LinuxContainerSecurityContext *dv_config_security(const struct dv_config_input *input,
                                                         struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_api_security_context *own = of_container(input);
    CriV1__LinuxContainerSecurityContext *made =
        DV_NEW(arena, CriV1__LinuxContainerSecurityContext);
    int policy;

    *made = (CriV1__LinuxContainerSecurityContext)CRI_V1__LINUX_CONTAINER_SECURITY_CONTEXT__INIT;
    made->seccomp = seccomp(input, arena, err);
    if (!made->seccomp || !set_apparmor(input, made, arena, err))
        return NULL;
    made->namespace_options = dv_config_namespaces(input->node, input->pod, arena, err);
    if (!made->namespace_options || !dv_config_groups_policy(input->pod->pod, &policy, err))
        return NULL;
    made->supplemental_groups_policy = (CriV1__SupplementalGroupsPolicy)policy;
    made->supplemental_groups =
        dv_config_groups(input->pod->pod, arena, &made->n_supplemental_groups);
    made->selinux_options = dv_config_selinux(
        own->se_linux_options ? own->se_linux_options : of_pod(input)->se_linux_options, arena);
    set_capabilities(own->capabilities, made, arena);
    made->privileged = is_set(own->privileged);
    made->readonly_rootfs = is_set(own->read_only_root_filesystem);
    made->no_new_privs = own->allow_privilege_escalation && !*own->allow_privilege_escalation;
    set_user(input, made, arena);
    set_paths(input, made, arena);
    /* A debugging container sees the processes of its target. */
    if (input->target_id.n > 0 &&
        made->namespace_options->pid == CRI_V1__NAMESPACE_MODE__CONTAINER) {
        made->namespace_options->pid = CRI_V1__NAMESPACE_MODE__TARGET;
        made->namespace_options->target_id = dv_str_to_c(input->target_id, arena);
    }
    return made;
}
