/* conflict.c - what people are told when a device is held by another pod. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"

/* A message names this many devices of a holder. */
#define TOLD_DEVICES_MAX 4u
#define TOLD_BYTES_MAX 4096u

/* "pod a/x through resource example.com/gpu device gpu0", "pod b/y through driver d.example.com
 * claim b/c device pool/gpu-0"; of many devices the first few. */
static void print_holder(const struct dv_ledger_holder *holder, struct dv_buf *buf)
{
    dv_buf_printf(
        buf, "pod %.*s/%.*s through %s %.*s", DV_FMT(holder->namespace), DV_FMT(holder->name),
        holder->giver_kind == DV_LEDGER_PLUGIN ? "resource" : "driver", DV_FMT(holder->giver));
    if (holder->claim.n > 0)
        dv_buf_printf(buf, " claim %.*s/%.*s", DV_FMT(holder->namespace), DV_FMT(holder->claim));
    if (holder->n_devices > 0)
        dv_buf_add_c(buf, holder->n_devices == 1 ? " device" : " devices");
    for (size_t i = 0; i < holder->n_devices && i < TOLD_DEVICES_MAX; i++)
        dv_buf_printf(buf, "%s %.*s", i > 0 ? "," : "", DV_FMT(holder->devices[i]));
    if (holder->n_devices > TOLD_DEVICES_MAX)
        dv_buf_printf(buf, " and %zu more", holder->n_devices - TOLD_DEVICES_MAX);
}

bool dv_ledger_conflict_fail(const struct dv_ledger_conflict *conflict,
                             const struct dv_ledger_holder *holder, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TOLD_BYTES_MAX);
    print_holder(conflict->holder, &buf);
    dv_buf_add_c(&buf, "; wanted by ");
    print_holder(holder, &buf);
    return dv_fail(err, DV_FAILED_PRECONDITION, "%s %.*s is held by %s",
                   dv_identity_kind_name(conflict->identity.kind), DV_FMT(conflict->identity.text),
                   dv_buf_c(&buf));
}
