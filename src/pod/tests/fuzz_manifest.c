/* fuzz_manifest.c - the file of a static pod.
 *
 * One that is taken is a pod that an API would take, of this node, that refers to nothing; read
 * again it is the same pod. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pod/static/manifest.h"
#include "resource/references.h"
#include "resource/resource.h"

#define BYTES_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_none(void *ctx, const struct dv_reference *reference)
{
    (void)ctx;
    (void)reference;
    return false;
}

static bool ends_with(dv_str text, dv_str end)
{
    return text.n >= end.n && dv_str_eq(dv_str_slice(text, text.n - end.n, text.n), end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct dv_manifest_place place = {
        DV_STR("/m/f"), DV_STR("n1"), {.seconds = 1, .is_set = true}
    };
    dv_str text = {(const char *)data, size};
    struct dv_err err = {0};
    struct dv_object *pod;
    struct dv_object *again;
    const struct dv_api_pod *value;

    if (size > BYTES_MAX)
        return 0;
    pod = dv_manifest_read(text, &place, &err);
    if (!pod) {
        assert(err.code != DV_OK && err.msg[0] != '\0');
        return 0;
    }
    value = pod->value;
    assert(ends_with(pod->meta->name, DV_STR("-n1")) && pod->meta->uid.n > 0);
    assert(pod->meta->namespace.n > 0 && dv_str_eq(value->spec.node_name, DV_STR("n1")));
    assert(value->spec.n_containers > 0 && value->spec.n_tolerations > 0);
    assert(dv_pod_visit_references(value, is_none, NULL));
    again = dv_manifest_read(text, &place, &err);
    assert(again && dv_manifest_eq(pod, again));
    dv_object_unref(again);
    dv_object_unref(pod);
    return 0;
}
