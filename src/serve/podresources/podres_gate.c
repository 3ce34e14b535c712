#include "serve/podresources/podres_gate.h"

#include "base/clock.h"
#include "base/num.h"

#define NS_PER_TOKEN (DV_NS_PER_S / DV_PODRES_CALLS_PER_S)
#define SAVED_NS_MAX (DV_PODRES_BURST * NS_PER_TOKEN)

void dv_podres_gate_init(struct dv_podres_gate *gate, uint64_t now_ns)
{
    *gate = (struct dv_podres_gate){.saved_ns = SAVED_NS_MAX, .filled_ns = now_ns};
}

static void count(struct dv_podres_counts *counts, enum dv_podres_call call)
{
    counts->n_requests[call == DV_PODRES_ALPHA_LIST]++;
    switch (call) {
    case DV_PODRES_LIST:
        counts->n_list++;
        break;
    case DV_PODRES_GET_ALLOCATABLE:
        counts->n_get_allocatable++;
        break;
    case DV_PODRES_GET:
        counts->n_get++;
        break;
    case DV_PODRES_ALPHA_LIST: /* the reference has no counter for it */
        break;
    }
}

bool dv_podres_gate_pass(struct dv_podres_gate *gate, enum dv_podres_call call, uint64_t now_ns,
                         struct dv_err *err)
{
    if (now_ns > gate->filled_ns) {
        gate->saved_ns =
            dv_u64_min(dv_u64_add_clamped(gate->saved_ns, now_ns - gate->filled_ns), SAVED_NS_MAX);
        gate->filled_ns = now_ns;
    }
    if (gate->saved_ns < NS_PER_TOKEN)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "rejected by rate limit");
    gate->saved_ns -= NS_PER_TOKEN;
    count(&gate->counts, call);
    return true;
}
