/* fuzz_ledger.c - identities from any text, and a ledger under any sequence of operations.
 *
 * A line is an identity: what it is parsed to, parsed again, is the same; a cleaned path stays as
 * it is. Then the bytes are operations. A conflict is with another pod, through another source,
 * that holds the very identity; after all is released nothing is held and nothing conflicts. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/path.h"
#include "base/str.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"

#define LINES_MAX 64u
#define OPERATIONS_MAX 1000u
#define PODS 8u
#define GIVERS 6u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(dv_str text, struct dv_arena *arena, struct dv_identities *set)
{
    dv_str path = dv_path_clean_absolute(text, arena);
    struct dv_identity identity;
    struct dv_identity again;
    bool is_parsed;

    assert(path.n > 0 && path.p[0] == '/');
    assert(path.n <= text.n + 1);
    assert(dv_str_find(path, DV_STR("//")) == path.n);
    assert(dv_str_eq(dv_path_clean_absolute(path, arena), path));
    dv_identities_add_path(set, text, NULL, arena);
    if (!dv_identity_parse(text, arena, &identity))
        return;
    is_parsed = dv_identity_parse(identity.text, arena, &again);
    assert(is_parsed && again.kind == identity.kind && dv_str_eq(again.text, identity.text));
    assert(identity.kind == DV_IDENTITY_PCI || identity.kind == DV_IDENTITY_UUID);
    dv_identities_add(set, identity, arena);
}

static struct dv_ledger_holder holder_of(unsigned byte, const dv_str *device)
{
    static const dv_str uids[PODS] = {DV_STR_INIT("0"), DV_STR_INIT("1"), DV_STR_INIT("2"),
                                      DV_STR_INIT("3"), DV_STR_INIT("4"), DV_STR_INIT("5"),
                                      DV_STR_INIT("6"), DV_STR_INIT("7")};
    static const dv_str givers[GIVERS] = {DV_STR_INIT("a.com/x"), DV_STR_INIT("a.com/y"),
                                          DV_STR_INIT("b.com/x"), DV_STR_INIT("d"),
                                          DV_STR_INIT("e"),       DV_STR_INIT("")};
    unsigned giver = byte / PODS % GIVERS;

    return (struct dv_ledger_holder){
        .pod_uid = uids[byte % PODS],
        .namespace = DV_STR("s"),
        .name = uids[byte % PODS],
        .giver_kind = giver < 3 ? DV_LEDGER_PLUGIN : DV_LEDGER_DRIVER,
        .giver = givers[giver],
        .devices = device,
        .n_devices = 1,
    };
}

static bool holds(const struct dv_ledger *ledger, const struct dv_ledger_conflict *conflict)
{
    const struct dv_ledger_holder *holder;
    const struct dv_identity *identities;
    size_t n;

    for (size_t at = 0;
         dv_ledger_next(ledger, conflict->holder->pod_uid, &at, &holder, &identities, &n);) {
        for (size_t i = 0; holder == conflict->holder && i < n; i++) {
            if (identities[i].kind == conflict->identity.kind &&
                dv_str_eq(identities[i].text, conflict->identity.text))
                return true;
        }
    }
    return false;
}

static void ask(const struct dv_ledger *ledger, const struct dv_ledger_holder *holder,
                const struct dv_identity *identities, size_t n)
{
    struct dv_ledger_conflict conflict;

    if (dv_ledger_check(ledger, holder, identities, n, &conflict))
        return;
    assert(!dv_str_eq(conflict.holder->pod_uid, holder->pod_uid));
    assert(conflict.holder->giver_kind != holder->giver_kind ||
           !dv_str_eq(conflict.holder->giver, holder->giver));
    assert(holds(ledger, &conflict));
}

/* Three bytes: what, who, and which of the identities. */
static void operate(struct dv_ledger *ledger, const uint8_t *op, const struct dv_identities *set)
{
    dv_str device = {(const char *)&op[2], 1};
    struct dv_ledger_holder holder = holder_of(op[1], &device);
    size_t from = set->n > 0 ? op[2] % set->n : 0;
    size_t n = set->n > from ? op[2] / 16 % (set->n - from) + 1 : 0;
    const struct dv_identity *identities = n > 0 ? &set->v[from] : NULL;

    switch (op[0] % 5) {
    case 0:
    case 1:
        dv_ledger_release(ledger, holder.pod_uid);
        break;
    case 2:
        ask(ledger, &holder, identities, n);
        break;
    default:
        dv_ledger_hold(ledger, &holder, identities, n);
        if (op[0] % 2 == 0)
            (void)dv_ledger_learn(ledger, holder.pod_uid, n); /* as far as it comes */
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();
    dv_str rest = {size > 0 ? (const char *)data : "", size};
    struct dv_identities set = {0};
    struct dv_ledger_conflict conflict;
    const struct dv_ledger_holder *left;
    const struct dv_identity *identities;
    size_t n;
    dv_str line;

    for (size_t i = 0; i < LINES_MAX && dv_str_split(&rest, '\n', &line); i++)
        check_text(line, arena, &set);
    for (size_t i = 0; i + 3 <= size && i < 3 * OPERATIONS_MAX; i += 3)
        operate(ledger, &data[i], &set);
    for (unsigned i = 0; i < PODS; i++) {
        struct dv_ledger_holder holder = holder_of(i, NULL);

        dv_ledger_release(ledger, holder.pod_uid);
        assert(!dv_ledger_next(ledger, holder.pod_uid, &(size_t){0}, &left, &identities, &n));
    }
    for (unsigned i = 0; i < PODS * GIVERS; i++) {
        dv_str device = DV_STR("z");
        struct dv_ledger_holder holder = holder_of(i, &device);
        bool is_free = dv_ledger_check(ledger, &holder, set.v, set.n, &conflict);

        assert(is_free);
    }
    return 0;
}
