/* pod_security_checks.h - what the checks of the standards for pods share. */
#ifndef DV_RESOURCE_POD_SECURITY_CHECKS_H
#define DV_RESOURCE_POD_SECURITY_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_buf;

struct dv_texts {
    dv_str *v;
    size_t n;
    size_t size;
};

/* A pod that is checked. */
struct dv_pod_check {
    const struct dv_api_object_meta *meta;
    const struct dv_api_pod_spec *spec;
    DV_VEC(const struct dv_api_container *) containers; /* of all kinds */
    bool is_windows;
    struct dv_arena *arena;
    struct dv_buf *found;
    size_t n_found;
};

/* ---- words (pod_security.c) ---- */

void dv_texts_add(struct dv_texts *list, dv_str text, struct dv_arena *arena);
/* Adds the text where it belongs in the order, unless it is there. */
void dv_texts_add_sorted(struct dv_texts *list, dv_str text, struct dv_arena *arena);
/* `"a", "b"` */
dv_str dv_texts_quote(const struct dv_texts *list, struct dv_arena *arena);
dv_str dv_texts_join(const struct dv_texts *list, const char *between, struct dv_arena *arena);
/* `container "a"`, `containers "a", "b"` */
dv_str dv_texts_name(const char *noun, const struct dv_texts *names, struct dv_arena *arena);
/* `pod and container "a"`: who has set something. */
dv_str dv_pod_setters(bool is_pod, const struct dv_texts *names, struct dv_arena *arena);
/* Adds `reason (detail)` to what was found. */
void dv_pod_forbid(struct dv_pod_check *pod, const char *reason, dv_str detail);
/* Finds the containers of whose security context it is true. */
struct dv_texts
dv_pod_containers_that(const struct dv_pod_check *pod,
                       bool (*is_so)(const struct dv_api_security_context *context));

/* ---- checks: each adds what it finds ---- */

/* pod_baseline.c */
/* Finds the capabilities that containers add beside those that are allowed. */
void dv_pod_find_added(const struct dv_pod_check *pod, const dv_str *allowed, size_t n_allowed,
                       struct dv_texts *names, struct dv_texts *added);
dv_str dv_pod_added_text(const struct dv_pod_check *pod, const struct dv_texts *names,
                         const struct dv_texts *added);
/* Whether a seccomp profile is set that is forbidden. */
bool dv_pod_find_seccomp(struct dv_pod_check *pod);
void dv_pod_check_app_armor(struct dv_pod_check *pod);
void dv_pod_check_capabilities(struct dv_pod_check *pod);
void dv_pod_check_host_namespaces(struct dv_pod_check *pod);
void dv_pod_check_host_paths(struct dv_pod_check *pod);
void dv_pod_check_host_ports(struct dv_pod_check *pod);
void dv_pod_check_hosts(struct dv_pod_check *pod);
void dv_pod_check_privileged(struct dv_pod_check *pod);
void dv_pod_check_proc_mount(struct dv_pod_check *pod);
void dv_pod_check_se_linux(struct dv_pod_check *pod);
void dv_pod_check_seccomp(struct dv_pod_check *pod);
void dv_pod_check_sysctls(struct dv_pod_check *pod);
void dv_pod_check_host_process(struct dv_pod_check *pod);

/* pod_restricted.c */
void dv_pod_check_escalation(struct dv_pod_check *pod);
void dv_pod_check_dropped(struct dv_pod_check *pod);
void dv_pod_check_volumes(struct dv_pod_check *pod);
void dv_pod_check_non_root(struct dv_pod_check *pod);
void dv_pod_check_user(struct dv_pod_check *pod);
void dv_pod_check_seccomp_is_set(struct dv_pod_check *pod);

#endif
