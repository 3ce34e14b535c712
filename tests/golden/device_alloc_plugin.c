#include "device_alloc_plugin.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "device/device.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "json/json.h"

/* -- Texts ---------------------------------------------------------------------------------- */

static int c_cmp(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;

    return strcmp(*x, *y);
}

static int str_cmp(const void *a, const void *b)
{
    const dv_str *x = a;
    const dv_str *y = b;

    return dv_str_cmp(*x, *y);
}

struct dv_json *sorted_to_json(const dv_str *texts, size_t n, struct dv_arena *arena)
{
    dv_str *sorted = DV_NEW_ARRAY(arena, dv_str, n);
    struct dv_json *array = dv_json_new_array(arena);

    for (size_t i = 0; i < n; i++)
        sorted[i] = texts[i];
    qsort(sorted, n, sizeof(sorted[0]), str_cmp);
    for (size_t i = 0; i < n; i++)
        dv_json_append(array, dv_json_new_str(sorted[i], arena));
    return array;
}

static void sort_texts(const char **texts, size_t n)
{
    if (n > 0)
        qsort(texts, n, sizeof(texts[0]), c_cmp);
}

static struct dv_json *texts_to_json(const char *const *texts, size_t n, struct dv_arena *arena)
{
    struct dv_json *array = dv_json_new_array(arena);

    for (size_t i = 0; i < n; i++)
        dv_json_append(array, dv_json_new_str(dv_str_from_c(texts[i]), arena));
    return array;
}

static char *print(struct dv_arena *arena, const char *format, dv_str a, dv_str b)
{
    char *text = dv_arena_alloc(arena, strlen(format) + a.n + b.n + 1, 1);
    char *to = text;

    for (; *format; format++) { /* %a and %b */
        if (*format != '%') {
            *to++ = *format;
            continue;
        }
        format++;
        memcpy(to, *format == 'a' ? a.p : b.p, *format == 'a' ? a.n : b.n);
        to += *format == 'a' ? a.n : b.n;
    }
    return text;
}

static bool is(dv_str text, const char *c)
{
    return dv_str_eq(text, dv_str_from_c(c));
}

static void set(struct dv_json *object, const char *key, struct dv_json *value,
                struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), value, arena);
}

/* -- Messages ------------------------------------------------------------------------------- */

static void *request_of(const struct dv_device_step *step, const ProtobufCMessageDescriptor *type,
                        struct dv_arena *arena)
{
    struct dv_buf buf;
    struct dv_err err;
    void *message;

    dv_buf_init(&buf, SIZE_MAX);
    dv_device_step_encode(step, &buf);
    message = dv_pb_decode(type, dv_buf_str(&buf), arena, &err);
    dv_buf_fini(&buf);
    if (!message)
        abort();
    return message;
}

static dv_str encode(const ProtobufCMessage *message, struct dv_arena *arena)
{
    size_t n = dv_pb_size(message);
    char *bytes = dv_arena_alloc(arena, n, 1);

    dv_pb_encode(message, bytes, n);
    return (dv_str){bytes, n};
}

/* -- GetPreferredAllocation ----------------------------------------------------------------- */

static bool has(const char *const *texts, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(texts[i], text) == 0)
            return true;
    return false;
}

/* Both lists are sorted. */
static size_t prefer(dv_str mode, const DpV1beta1__ContainerPreferredAllocationRequest *request,
                     struct dv_arena *arena, const char **answer)
{
    size_t size = (size_t)request->allocation_size - (is(mode, "short") ? 1 : 0);
    size_t n = 0;

    if (is(mode, "none"))
        return 0;
    if (is(mode, "invalid")) {
        for (; n < size; n++)
            answer[n] = print(arena, "made-up-%a", dv_str_printf(arena, "%zu", n), DV_STR(""));
        return n;
    }
    for (; n < request->n_must_include_deviceids; n++)
        answer[n] = request->must_include_deviceids[n];
    for (size_t i = 0; i < request->n_available_deviceids; i++) {
        bool is_down = is(mode, "highest");
        const char *id =
            request->available_deviceids[is_down ? request->n_available_deviceids - 1 - i : i];

        if ((is(mode, "all") || n < size) &&
            !has(request->must_include_deviceids, request->n_must_include_deviceids, id))
            answer[n++] = id;
    }
    return n;
}

static bool answer_preferred(const struct stub *stub, const struct dv_device_step *step,
                             struct dv_arena *arena, dv_str *response, struct dv_json *call,
                             struct dv_err *status)
{
    DpV1beta1__PreferredAllocationResponse message =
        DP_V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    DpV1beta1__ContainerPreferredAllocationResponse inner =
        DP_V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
    DpV1beta1__ContainerPreferredAllocationResponse *inners[] = {&inner};
    DpV1beta1__PreferredAllocationRequest *outer =
        request_of(step, &dp_v1beta1__preferred_allocation_request__descriptor, arena);
    DpV1beta1__ContainerPreferredAllocationRequest *request = outer->container_requests[0];

    sort_texts(request->available_deviceids, request->n_available_deviceids);
    sort_texts(request->must_include_deviceids, request->n_must_include_deviceids);
    set(call, "method", dv_json_new_str(DV_STR("GetPreferredAllocation"), arena), arena);
    set(call, "available",
        texts_to_json(request->available_deviceids, request->n_available_deviceids, arena), arena);
    set(call, "mustInclude",
        texts_to_json(request->must_include_deviceids, request->n_must_include_deviceids, arena),
        arena);
    set(call, "size", dv_json_new_i64(request->allocation_size, arena), arena);
    if (is(stub->preferred, "error"))
        return dv_fail(status, DV_INTERNAL, "preferred failed");
    inner.deviceids = DV_NEW_ARRAY(
        arena, const char *, request->n_available_deviceids + (size_t)request->allocation_size);
    inner.n_deviceids = prefer(stub->preferred, request, arena, inner.deviceids);
    set(call, "answer", texts_to_json(inner.deviceids, inner.n_deviceids, arena), arena);
    message.n_container_responses = 1;
    message.container_responses = inners;
    *response = encode(&message.base, arena);
    return true;
}

/* -- Allocate ------------------------------------------------------------------------------- */

struct made {
    DV_VEC(DpV1beta1__ContainerAllocateResponse__EnvsEntry *) envs;
    DV_VEC(DpV1beta1__ContainerAllocateResponse__AnnotationsEntry *) annotations;
    DV_VEC(DpV1beta1__Mount *) mounts;
    DV_VEC(DpV1beta1__DeviceSpec *) devices;
    DV_VEC(DpV1beta1__CDIDevice *) names;
    struct dv_arena *arena;
};

static void add_env(struct made *made, const char *name, const char *value)
{
    *dv_vec_add_in(&made->envs, made->arena) = dv_pb_entry_new(
        &dp_v1beta1__container_allocate_response__envs_entry__descriptor, name, value, made->arena);
}

static void add_annotation(struct made *made, const char *name, const char *value)
{
    *dv_vec_add_in(&made->annotations, made->arena) =
        dv_pb_entry_new(&dp_v1beta1__container_allocate_response__annotations_entry__descriptor,
                        name, value, made->arena);
}

static void add_mount(struct made *made, char *to, char *from, bool is_read_only)
{
    DpV1beta1__Mount *mount = DV_NEW(made->arena, DpV1beta1__Mount);

    dp_v1beta1__mount__init(mount);
    mount->container_path = to;
    mount->host_path = from;
    mount->read_only = is_read_only;
    *dv_vec_add_in(&made->mounts, made->arena) = mount;
}

static void add_device(struct made *made, char *to, char *from, char *permissions)
{
    DpV1beta1__DeviceSpec *device = DV_NEW(made->arena, DpV1beta1__DeviceSpec);

    dp_v1beta1__device_spec__init(device);
    device->container_path = to;
    device->host_path = from;
    device->permissions = permissions;
    *dv_vec_add_in(&made->devices, made->arena) = device;
}

static void add_name(struct made *made, char *name)
{
    DpV1beta1__CDIDevice *device = DV_NEW(made->arena, DpV1beta1__CDIDevice);

    dp_v1beta1__cdidevice__init(device);
    device->name = name;
    *dv_vec_add_in(&made->names, made->arena) = device;
}

static void make_all(struct made *made, dv_str resource, dv_str kind, const char *const *ids,
                     size_t n)
{
    struct dv_arena *arena = made->arena;
    char *env = print(arena, "VISIBLE_%a", kind, DV_STR(""));
    dv_str joined = DV_STR("");

    for (char *c = env; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    for (size_t i = 0; i < n; i++) {
        dv_str id = dv_str_from_c(ids[i]);

        joined = dv_str_printf(arena, "%.*s%s%s", DV_FMT(joined), i > 0 ? "," : "", ids[i]);
        add_device(made, print(arena, "/dev/%a/%b", kind, id),
                   print(arena, "/dev/host/%a", id, DV_STR("")),
                   print(arena, "rw", DV_STR(""), DV_STR("")));
        add_name(made, print(arena, "%a=%b", resource, id));
    }
    add_env(made, env, dv_str_to_c(joined, arena));
    add_mount(made, print(arena, "/run/%a", kind, DV_STR("")),
              print(arena, "/var/run/%a", kind, DV_STR("")), true);
    add_annotation(made, print(arena, "vendor.example/%a", kind, DV_STR("")),
                   dv_str_to_c(dv_str_printf(arena, "%zu", n), arena));
}

static void make_shared(struct made *made, dv_str kind)
{
    struct dv_arena *arena = made->arena;

    add_env(made, "SHARED", dv_str_to_c(kind, arena));
    add_annotation(made, "vendor.example/shared", dv_str_to_c(kind, arena));
    add_mount(made, print(arena, "/run/shared", kind, kind),
              print(arena, "/var/run/shared-%a", kind, kind), false);
    add_device(made, print(arena, "/dev/shared", kind, kind),
               print(arena, "/dev/shared-%a", kind, kind), print(arena, "r", kind, kind));
    add_name(made, print(arena, "vendor.example/shared=0", kind, kind));
}

static dv_str make_response(const struct stub *stub, const char *const *ids, size_t n,
                            struct dv_arena *arena)
{
    DpV1beta1__AllocateResponse message = DP_V1BETA1__ALLOCATE_RESPONSE__INIT;
    DpV1beta1__ContainerAllocateResponse inner = DP_V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    DpV1beta1__ContainerAllocateResponse *inners[] = {&inner};
    struct made made = {.arena = arena};
    dv_str kind =
        dv_str_slice(stub->resource, dv_str_find_char(stub->resource, '/') + 1, stub->resource.n);

    if (is(stub->profile, "cdi"))
        for (size_t i = 0; i < n; i++)
            add_name(&made, print(arena, "%a=%b", stub->resource, dv_str_from_c(ids[i])));
    if (is(stub->profile, "all") || is(stub->profile, "conflict"))
        make_all(&made, stub->resource, kind, ids, n);
    if (is(stub->profile, "conflict"))
        make_shared(&made, kind);
    inner.envs = made.envs.v;
    inner.n_envs = made.envs.n;
    inner.annotations = made.annotations.v;
    inner.n_annotations = made.annotations.n;
    inner.mounts = made.mounts.v;
    inner.n_mounts = made.mounts.n;
    inner.devices = made.devices.v;
    inner.n_devices = made.devices.n;
    inner.cdi_devices = made.names.v;
    inner.n_cdi_devices = made.names.n;
    message.n_container_responses = is(stub->allocate, "empty") ? 0 : 1;
    message.container_responses = inners;
    return encode(&message.base, arena);
}

static bool answer_allocate(const struct stub *stub, const struct dv_device_step *step,
                            struct dv_arena *arena, dv_str *response, struct dv_json *call,
                            struct dv_err *status)
{
    DpV1beta1__AllocateRequest *outer =
        request_of(step, &dp_v1beta1__allocate_request__descriptor, arena);
    DpV1beta1__ContainerAllocateRequest *request = outer->container_requests[0];

    sort_texts(request->devices_ids, request->n_devices_ids);
    set(call, "method", dv_json_new_str(DV_STR("Allocate"), arena), arena);
    set(call, "ids", texts_to_json(request->devices_ids, request->n_devices_ids, arena), arena);
    if (is(stub->allocate, "error"))
        return dv_fail(status, DV_RESOURCE_EXHAUSTED, "allocate failed");
    *response = make_response(stub, request->devices_ids, request->n_devices_ids, arena);
    return true;
}

/* ------------------------------------------------------------------------------------------- */

static bool answer_pre_start(const struct stub *stub, const struct dv_device_step *step,
                             struct dv_arena *arena, dv_str *response, struct dv_json *call,
                             struct dv_err *status)
{
    DpV1beta1__PreStartContainerRequest *request =
        request_of(step, &dp_v1beta1__pre_start_container_request__descriptor, arena);

    sort_texts(request->devices_ids, request->n_devices_ids);
    set(call, "method", dv_json_new_str(DV_STR("PreStartContainer"), arena), arena);
    set(call, "ids", texts_to_json(request->devices_ids, request->n_devices_ids, arena), arena);
    if (is(stub->pre_start, "error"))
        return dv_fail(status, DV_UNAVAILABLE, "prestart failed");
    *response = DV_STR("");
    return true;
}

bool stub_answer(const struct stub *stub, const struct dv_device_step *step, struct dv_arena *arena,
                 dv_str *response, struct dv_json **call, struct dv_err *status)
{
    *call = dv_json_new_object(arena);
    switch (step->kind) {
    case DV_DEVICE_ASK_PREFERRED:
        return answer_preferred(stub, step, arena, response, *call, status);
    case DV_DEVICE_ASK_ALLOCATE:
        return answer_allocate(stub, step, arena, response, *call, status);
    case DV_DEVICE_ASK_PRESTART:
        return answer_pre_start(stub, step, arena, response, *call, status);
    case DV_DEVICE_DONE:
    case DV_DEVICE_FAILED:
        break;
    }
    abort(); /* nothing to answer */
}

static void add_nodes(struct dv_buf *buf, const struct dv_json *numa)
{
    size_t topology = dv_pb_begin(buf, 3);
    struct dv_err err;

    for (const struct dv_json *node = dv_json_first(numa); node; node = dv_json_next(node)) {
        size_t mark = dv_pb_begin(buf, 1);
        int64_t id = 0;

        if (!dv_json_as_i64(node, &id, &err))
            abort();
        if (id != 0)
            dv_pb_add_number(buf, 1, (uint64_t)id);
        dv_pb_end(buf, mark);
    }
    dv_pb_end(buf, topology);
}

dv_str stub_list(const struct dv_json *devices, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str bytes;

    dv_buf_init(&buf, SIZE_MAX);
    for (const struct dv_json *from = dv_json_first(devices); from; from = dv_json_next(from)) {
        const struct dv_json *numa = dv_json_get(from, DV_STR("numa"));
        size_t device = dv_pb_begin(&buf, 1);
        bool is_healthy = false;
        struct dv_err err;
        dv_str id;

        if (!dv_json_as_str(dv_json_get(from, DV_STR("id")), &id, &err) ||
            !dv_json_as_bool(dv_json_get(from, DV_STR("healthy")), &is_healthy, &err))
            abort();
        dv_pb_add_bytes(&buf, 1, id);
        dv_pb_add_bytes(&buf, 2, is_healthy ? DV_STR("Healthy") : DV_STR("Unhealthy"));
        if (numa && !dv_json_is(numa, DV_JSON_NULL))
            add_nodes(&buf, numa);
        dv_pb_end(&buf, device);
    }
    bytes = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return bytes;
}
