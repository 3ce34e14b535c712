/* lib_answer.c - what a driver adds to its answers. The first mistake is kept, and fails the call.
 */
#include "base/err.h"
#include "base/str.h"
#include "davit/driver.h"
#include "lib/common/lib_call.h"
#include "pb/pb.h"

static bool is_of_kind(struct davit_call *call, enum dv_lib_rpc_kind kind)
{
    if (call->rpc->kind != kind && call->err.code == DV_OK)
        (void)dv_fail(&call->err, DV_INTERNAL,
                      "the driver answers with what this call did not ask for");
    return call->err.code == DV_OK;
}

/* Checks a text that the driver gave. False, with the call's error set: `what` names the text. */
static bool check_text(struct davit_call *call, const char *what, const char *text)
{
    if (text && dv_str_is_utf8(dv_str_from_c(text)))
        return true;
    return dv_fail(&call->err, DV_INTERNAL, "the driver's answer: %s is %s", what,
                   text ? "not UTF-8" : "missing");
}

static bool check_filled(struct davit_call *call, const char *what, const char *text)
{
    if (!check_text(call, what, text))
        return false;
    if (text[0] != '\0')
        return true;
    return dv_fail(&call->err, DV_INTERNAL, "the driver's answer: %s is empty", what);
}

static bool check_path(struct davit_call *call, const char *what, const char *path)
{
    if (!check_text(call, what, path))
        return false;
    if (path[0] == '/')
        return true;
    return dv_fail(&call->err, DV_INTERNAL, "the driver's answer: %s \"%s\" is not absolute", what,
                   path);
}

/* Adds a string field; proto3 leaves out an empty one. */
static void add_text(struct davit_call *call, uint32_t number, const char *text)
{
    if (text[0] != '\0')
        dv_pb_add_bytes(&call->answer, number, dv_str_from_c(text));
}

static void add_entry(struct davit_call *call, uint32_t number, const char *key, const char *value)
{
    size_t mark = dv_pb_begin(&call->answer, number);

    add_text(call, 1, key);
    add_text(call, 2, value);
    dv_pb_end(&call->answer, mark);
}

void davit_allocate_add_env(struct davit_call *call, const char *name, const char *value)
{
    if (!is_of_kind(call, DV_RPC_ALLOCATE) || !check_filled(call, "an env's name", name) ||
        !check_text(call, "an env's value", value))
        return;
    if (dv_str_find_char(dv_str_from_c(name), '=') < dv_str_from_c(name).n) {
        (void)dv_fail(&call->err, DV_INTERNAL,
                      "the driver's answer: env name \"%s\" has a =", name);
        return;
    }
    add_entry(call, 1, name, value);
}

void davit_allocate_add_mount(struct davit_call *call, const char *host_path,
                              const char *container_path, bool is_read_only)
{
    size_t mark;

    if (!is_of_kind(call, DV_RPC_ALLOCATE) || !check_path(call, "a mount's host path", host_path) ||
        !check_path(call, "a mount's container path", container_path))
        return;
    mark = dv_pb_begin(&call->answer, 2);
    add_text(call, 1, container_path);
    add_text(call, 2, host_path);
    if (is_read_only)
        dv_pb_add_number(&call->answer, 3, 1);
    dv_pb_end(&call->answer, mark);
}

void davit_allocate_add_device(struct davit_call *call, const char *host_path,
                               const char *container_path, const char *permissions)
{
    const char *inside = container_path ? container_path : host_path;
    size_t mark;

    if (!is_of_kind(call, DV_RPC_ALLOCATE) ||
        !check_path(call, "a device's host path", host_path) ||
        !check_path(call, "a device's container path", inside) ||
        !check_filled(call, "a device's permissions", permissions))
        return;
    for (const char *letter = permissions; *letter; letter++)
        if (*letter != 'r' && *letter != 'w' && *letter != 'm') {
            (void)dv_fail(&call->err, DV_INTERNAL,
                          "the driver's answer: permissions \"%s\" are not of r, w, m",
                          permissions);
            return;
        }
    mark = dv_pb_begin(&call->answer, 3);
    add_text(call, 1, inside);
    add_text(call, 2, host_path);
    add_text(call, 3, permissions);
    dv_pb_end(&call->answer, mark);
}

void davit_allocate_add_annotation(struct davit_call *call, const char *key, const char *value)
{
    if (is_of_kind(call, DV_RPC_ALLOCATE) && check_filled(call, "an annotation's key", key) &&
        check_text(call, "an annotation's value", value))
        add_entry(call, 4, key, value);
}

void davit_allocate_add_cdi(struct davit_call *call, const char *name)
{
    dv_str text = dv_str_from_c(name);
    size_t slash = dv_str_find_char(text, '/');
    size_t equals = dv_str_find_char(text, '=');
    size_t mark;

    if (!is_of_kind(call, DV_RPC_ALLOCATE) || !check_filled(call, "a CDI name", name))
        return;
    if (slash == 0 || slash + 1 >= equals || equals + 1 >= text.n) {
        (void)dv_fail(&call->err, DV_INTERNAL,
                      "the driver's answer: CDI name \"%s\" is not like vendor.com/class=name",
                      name);
        return;
    }
    mark = dv_pb_begin(&call->answer, 5);
    add_text(call, 1, name);
    dv_pb_end(&call->answer, mark);
}

void davit_prefer_add_id(struct davit_call *call, const char *id)
{
    if (is_of_kind(call, DV_RPC_PREFER) && check_filled(call, "a device id", id))
        dv_pb_add_bytes(&call->answer, 1, dv_str_from_c(id));
}
