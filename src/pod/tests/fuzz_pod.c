/* fuzz_pod.c - a Pod that somebody wants admitted.
 *
 * One that is taken has names, containers that differ, and limits in order that are its requests;
 * printed and read again it is the same, and so it is as a row of the store. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "pod/admission/pod_row.h"
#include "pod/pod.h"
#include "json/json.h"

#define BYTES_MAX 65536u
/* An escaped character can become six. */
#define TEXT_BYTES_MAX (6u * BYTES_MAX + 4096u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(dv_str name)
{
    assert(name.n > 0 && name.n <= 253);
    assert(dv_str_find_char(name, '/') == name.n && dv_str_find_char(name, '\0') == name.n);
}

static void check_container(const struct dv_pod_spec *spec, size_t i)
{
    const struct dv_pod_container *container = &spec->containers[i];
    const struct dv_api_container *object = dv_pod_spec_container(spec, container->name);

    check_name(container->name);
    for (size_t k = 0; k < i; k++) { /* init containers come first */
        assert(!dv_str_eq(spec->containers[k].name, container->name));
        assert(spec->containers[k].kind != DV_DEVICE_REGULAR ||
               container->kind == DV_DEVICE_REGULAR);
    }
    for (size_t k = 0; k < container->n_limits; k++) {
        assert(container->limits[k].amount >= 0);
        assert(dv_str_find_char(container->limits[k].resource, '/') <
               container->limits[k].resource.n);
        assert(k == 0 ||
               dv_str_cmp(container->limits[k - 1].resource, container->limits[k].resource) < 0);
    }
    assert(!spec->object == !object);
}

static void check_same(const struct dv_pod_spec *a, const struct dv_pod_spec *b)
{
    assert(dv_str_eq(a->ref.name, b->ref.name) && dv_str_eq(a->ref.namespace, b->ref.namespace));
    assert(dv_str_eq(a->ref.uid, b->ref.uid) && a->owner_pid == b->owner_pid);
    assert(dv_str_eq(a->owner_start, b->owner_start));
    assert(dv_str_eq(a->owner_cgroup, b->owner_cgroup));
    assert(a->origin == b->origin);
    assert(!a->object == !b->object && a->n_containers == b->n_containers);
    for (size_t i = 0; i < a->n_containers; i++) {
        const struct dv_pod_container *x = &a->containers[i];
        const struct dv_pod_container *y = &b->containers[i];

        assert(dv_str_eq(x->name, y->name) && x->kind == y->kind && x->n_limits == y->n_limits);
        for (size_t k = 0; k < x->n_limits; k++)
            assert(dv_str_eq(x->limits[k].resource, y->limits[k].resource) &&
                   x->limits[k].amount == y->limits[k].amount &&
                   x->limits[k].is_claimed == y->limits[k].is_claimed);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str text = {(const char *)data, size};
    struct dv_pod_spec spec;
    struct dv_pod_spec again;
    struct dv_err err;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (size > BYTES_MAX)
        return 0;
    if (!dv_pod_row_parse(text, arena, &again, &err))
        assert(err.code != DV_OK && err.msg[0] != '\0');
    if (!dv_pod_spec_parse(text, arena, &spec, &err)) {
        assert(err.code != DV_OK && err.msg[0] != '\0');
        return 0;
    }
    check_name(spec.ref.name);
    assert(spec.n_containers > 0 && spec.owner_pid <= INT32_MAX);
    assert(spec.owner_pid == 0 || spec.owner_cgroup.n == 0);
    for (size_t i = 0; i < spec.n_containers; i++)
        check_container(&spec, i);
    dv_json_print(dv_json_parse(text, NULL, arena, &err), NULL, &buf);
    assert(dv_pod_spec_parse(dv_buf_str(&buf), arena, &again, &err));
    check_same(&spec, &again);
    assert(dv_pod_row_parse(dv_pod_row_print(&spec, text, arena), arena, &again, &err));
    check_same(&spec, &again);
    return 0;
}
