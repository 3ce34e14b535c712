/* fuzz_policy.c - a policy file: what is refused says why; of what is taken a peer of which nothing
 * is known is allowed nothing that some rule speaks of. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find_group(void *ctx, dv_str name, gid_t *gid)
{
    (void)ctx;
    *gid = (gid_t)name.n;
    return name.n % 2 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct dv_policy_peer unknown = {0};
    static const dv_str names[] = {DV_STR_INIT("gpu.example.com"), DV_STR_INIT("davit.sock"),
                                   DV_STR_INIT("/run/x.sock")};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = {(const char *)data, size};
    struct dv_err err = {0};
    const struct dv_policy *policy = dv_policy_parse(text, find_group, NULL, arena, &err);

    (void)dv_policy_unit_of(text);
    if (!policy) {
        assert(err.code != DV_OK && err.msg[0] != '\0');
        return 0;
    }
    for (enum dv_policy_action action = 0; action < DV_N_POLICY_ACTIONS; action++)
        for (size_t i = 0; i < DV_COUNT(names); i++) {
            struct dv_policy_verdict verdict = dv_policy_judge(policy, &unknown, action, names[i]);

            assert(verdict.is_allowed == !verdict.is_ruled);
        }
    return 0;
}
