/* cri_text.c - errors of a runtime as text for people. */
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cri/cri.h"

void dv_cri_print_text(dv_str text, dv_str id, dv_str name, struct dv_buf *buf)
{
    while (id.n > 0 && text.n > 0) {
        size_t at = dv_str_find(text, id);

        dv_buf_add(buf, dv_str_slice(text, 0, at));
        if (at == text.n)
            return;
        dv_buf_add(buf, name);
        text = dv_str_slice(text, at + id.n, text.n);
    }
    dv_buf_add(buf, text);
}

void dv_cri_print_rpc_error(const struct dv_err *err, struct dv_buf *buf)
{
    /* As Go's gRPC names the codes, which are numbered as ours. */
    static const char *const names[] = {
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    };
    size_t code = (size_t)err->code;

    if (code < DV_COUNT(names))
        dv_buf_printf(buf, "rpc error: code = %s desc = %s", names[code], err->msg);
    else
        dv_buf_printf(buf, "rpc error: code = Code(%zu) desc = %s", code, err->msg);
}
