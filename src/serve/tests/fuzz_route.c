/* Whatever a path and a header say: objects that are named exist as a kind, in a scope that fits,
 * and a form that is chosen is one that was asked for. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "serve/wire/kube_accept.h"
#include "serve/wire/kube_route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_route(dv_str path, struct dv_arena *arena)
{
    struct dv_route route;

    dv_route_parse(path, NULL, arena, &route);
    assert(route.path.n <= path.n + 1);
    if (route.what != DV_ROUTE_OBJECTS)
        return;
    assert(route.is_resource && route.kind && route.api_version);
    assert(dv_str_eq(route.kind->plural, route.resource));
    assert(!route.subresource.n || route.name.n);
    assert(!route.kind->is_namespaced || !route.name.n || route.namespace.n);
}

static void check_accept(dv_str accept)
{
    struct dv_rendering rendering;

    if (!dv_accept_negotiate(accept, DV_ANSWER_OBJECTS, &rendering))
        return;
    assert(dv_accept_has_ours(accept));
    assert(rendering.form != DV_FORM_DISCOVERY);
    assert(rendering.form != DV_FORM_TABLE || rendering.media != DV_MEDIA_PROTOBUF);
}

/* A line with the path, then the header. The server hands on only what it could decode. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = {(const char *)data, size};
    size_t at = dv_str_find_char(text, '\n');
    dv_str path = dv_str_slice(text, 0, at);

    if (path.n && path.p[0] == '/' && dv_str_find_char(path, '%') == path.n)
        check_route(path, arena);
    check_accept(dv_str_slice(text, at + 1, text.n));
    return 0;
}
