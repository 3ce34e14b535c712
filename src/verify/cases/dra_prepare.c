/* dra_prepare.c - cases: NodePrepareResources. */
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "proto/dra_v1.pb-c.h"
#include "resource/resource.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/dra_link.h"
#include "verify/kit/driver_calls.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

#define N_PARALLEL 4u
#define HOLDERS_MAX 8u
/* For a driver that watches claims to see that one is gone. */
#define NEWS_MS 100u
/* A pod's start waits for it; the kubelet's limit is 45 s. */
#define PREPARE_MS 10000u
/* From its question for the claim to the kill: when it has begun to write, or is just done. */
#define IN_CALL_MS 30u
/* What a driver's files for one claim fit into, and what of that is left when the disk is full. */
#define DISK_BYTES (4u << 20)

static void run_one(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    uint64_t start_ms = dv_trial_now_ms(trial);

    (void)dv_dra_prepare(link, claim);
    if (dv_trial_now_ms(trial) - start_ms > PREPARE_MS)
        dv_trial_fail(trial, "NodePrepareResources took %llu ms; a pod's start waits for it",
                      (unsigned long long)(dv_trial_now_ms(trial) - start_ms));
}

static void run_idempotent(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    const dv_prepared *first = dv_dra_prepare(link, claim);

    if (!dv_prepared_is_same(first, dv_dra_prepare(link, claim)))
        dv_trial_fail(trial, "a second NodePrepareResources gives something else than the first");
    dv_dra_check_cdi(link, first, "after a second call");
}

static void run_parallel(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claims[N_PARALLEL];
    struct dv_driver_call *calls[2 * N_PARALLEL];
    size_t n = 0;
    struct dv_err err;

    claims[n++] = dv_claim_make(link, DV_CLAIM_PLAIN);
    while (n < N_PARALLEL && (claims[n] = dv_claim_try(link, DV_CLAIM_PLAIN)))
        n++; /* as many as there are devices for */
    for (size_t i = 0; i < 2 * n; i++)
        calls[i] = dv_dra_start(link, &claims[i % n], 1, false);
    for (size_t i = 0; i < 2 * n; i++) {
        const dv_prepared *prepared;

        (void)dv_driver_finish(calls[i]);
        prepared = dv_dra_result(calls[i], claims[i % n], &err);
        if (!prepared)
            dv_trial_fail(trial, "of %zu calls at a time one failed: %s", 2 * n, err.msg);
        for (size_t j = 0; j < prepared->n_devices; j++)
            if (!dv_claim_has_result(claims[i % n], prepared->devices[j]))
                dv_trial_fail(trial, "of %zu calls at a time, one got the answer of another",
                              2 * n);
        dv_dra_check_cdi(link, prepared, "after calls at the same time");
    }
}

static void run_several(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claims[2];
    struct dv_driver_call *call;
    struct dv_err err;

    for (size_t i = 0; i < 2; i++)
        claims[i] = dv_claim_make(link, DV_CLAIM_PLAIN);
    call = dv_dra_start(link, claims, 2, false);
    (void)dv_driver_finish(call);
    for (size_t i = 0; i < 2; i++) {
        const dv_prepared *prepared = dv_dra_result(call, claims[i], &err);

        if (!prepared)
            dv_trial_fail(trial, "of two claims in one call, claim %zu failed: %s", i + 1, err.msg);
        for (size_t j = 0; j < prepared->n_devices; j++)
            if (!dv_claim_has_result(claims[i], prepared->devices[j]))
                dv_trial_fail(trial, "of two claims in one call, one has the devices of the other");
    }
}

static void run_partial(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claims[2] = {dv_claim_make(link, DV_CLAIM_PLAIN), dv_claim_invent(link)};
    struct dv_driver_call *call = dv_dra_start(link, claims, 2, false);
    struct dv_err err;

    (void)dv_driver_finish(call);
    if (call->err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "a call with a claim that is not there was never answered");
    if (dv_dra_result(call, claims[1], &err))
        dv_trial_fail(trial, "a claim that is not there is answered as prepared");
    if (call->answer && err.code == DV_NOT_FOUND)
        dv_trial_fail(trial, "the call succeeded, and says nothing about the claim that failed");
    (void)dv_dra_prepare(link, claims[0]); /* the good one alone, afterwards */
}

static void refuse(struct dv_dra_link *link, struct dv_test_claim *claim, const char *what)
{
    struct dv_err err;

    if (dv_dra_try_prepare(link, claim, &err))
        dv_trial_fail(link->trial, "NodePrepareResources succeeded for %s", what);
    if (err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(link->trial, "NodePrepareResources for %s was never answered", what);
    (void)dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));
}

static void run_unknown(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    refuse(link, dv_claim_invent(link), "a claim that the API does not have");
}

static void run_unallocated(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    refuse(link, dv_claim_make(link, DV_CLAIM_UNALLOCATED), "a claim without an allocation");
}

static void run_replaced(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    char uid[DV_UUID_BYTES];

    claim->uid = dv_str_copy(dv_random_uuid(uid), trial->arena);
    refuse(link, claim, "a claim of this name with another UID");
}

static void run_deleted(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);

    if (!dv_api_delete(trial, DV_KIND_CLAIM, claim->name))
        dv_trial_break(trial, "the claim cannot be deleted");
    dv_trial_pass(trial, NEWS_MS);
    refuse(link, claim, "a claim that was deleted meanwhile");
}

static void run_shared(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    const dv_prepared *first = dv_dra_prepare(link, claim);

    /* The second pod of a shared claim comes long after the first: other calls lie between. */
    (void)dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));
    if (!dv_prepared_is_same(first, dv_dra_prepare(link, claim)))
        dv_trial_fail(trial, "for a second pod the shared claim has other devices or CDI names");
    dv_dra_check_cdi(link, first, "for a second pod");
}

static void run_admin(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    const dv_prepared *held = dv_dra_prepare(link, claim);
    struct dv_test_claim *admin;

    for (size_t i = 1; i < HOLDERS_MAX && (claim = dv_claim_try(link, DV_CLAIM_PLAIN)); i++)
        held = dv_dra_prepare(link, claim);
    admin = dv_claim_make(link, DV_CLAIM_ADMIN);
    (void)dv_dra_prepare(link, admin);
    dv_dra_unprepare(link, admin);
    dv_dra_check_cdi(link, held, "after a claim with admin access for the same device");
}

static void run_config_good(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    (void)dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_CONFIG));
}

static void run_config_bad(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);

    refuse(link, dv_claim_make(link, DV_CLAIM_BAD), "parameters that it has to refuse");
}

static void check_after_restart(struct dv_trial *trial, bool is_killed)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    const dv_prepared *first = dv_dra_prepare(link, claim);

    link = dv_dra_link_restart(link, is_killed);
    dv_dra_check_cdi(link, first, "after a restart of the driver");
    if (!dv_prepared_is_same(first, dv_dra_prepare(link, claim)))
        dv_trial_fail(trial, "after a restart of the driver the prepared claim has other devices "
                             "or CDI names");
    dv_dra_check_cdi(link, first, "after a restart and a second call");
}

static void run_after_restart(struct dv_trial *trial)
{
    check_after_restart(trial, false);
}

static void run_after_kill(struct dv_trial *trial)
{
    check_after_restart(trial, true);
}

static void run_kill_in_call(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    size_t n_reads = dv_api_counts(trial).n_claim_reads;
    const dv_prepared *prepared;
    struct dv_err err;

    (void)dv_dra_start(link, &claim, 1, false);
    /* In the middle: it has asked for the claim, or as long as that may take. */
    for (int i = 0; i < 50 && dv_api_counts(trial).n_claim_reads == n_reads; i++)
        dv_trial_pass(trial, 1);
    dv_trial_pass(trial, IN_CALL_MS);
    link = dv_dra_link_restart(link, true);
    prepared = dv_dra_try_prepare(link, claim, &err);
    if (!prepared)
        dv_trial_fail(trial, "killed while it prepared a claim, it cannot prepare it any more: %s",
                      err.msg);
    dv_dra_check_cdi(link, prepared, "after a kill in the middle of a call");
    dv_dra_unprepare(link, claim);
}

/* What /var/run has is gone, what is elsewhere stays, and the machine has another boot id where
 * that can be shown to the driver. */
static void run_after_reboot(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    const dv_prepared *prepared = dv_dra_prepare(link, claim);

    dv_child_kill(link->process);
    dv_trial_empty(trial, trial->paths.cdi);
    dv_trial_empty(trial, trial->paths.run);
    dv_trial_set_boot_id(trial);
    link = dv_dra_link_restart(link, true);
    prepared = dv_dra_prepare(link, claim);
    dv_dra_check_cdi(link, prepared, "after a reboot");
    dv_dra_unprepare(link, claim);
}

static void run_disk_full(struct dv_trial *trial)
{
    struct dv_dra_link *link;
    struct dv_test_claim *claim;
    const dv_prepared *prepared;
    /* Wherever the driver has been told to write. */
    const dv_str dirs[] = {trial->paths.cdi, trial->paths.run, trial->paths.state,
                           trial->paths.plugins};
    dv_str fill[DV_COUNT(dirs)];
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(dirs); i++)
        if (!dv_trial_mount_small(trial, dirs[i], DISK_BYTES))
            dv_trial_skip(trial, "this user may not mount a small disk");
    link = dv_dra_link_begin(trial);
    claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    for (size_t i = 0; i < DV_COUNT(dirs); i++)
        fill[i] = dv_trial_fill(trial, dirs[i]);
    prepared = dv_dra_try_prepare(link, claim, &err);
    if (prepared)
        dv_dra_check_cdi(link, prepared, "with a full disk it answered success, and");
    if (!prepared && err.code == DV_DEADLINE_EXCEEDED)
        dv_trial_fail(trial, "with a full disk it never answers");
    for (size_t i = 0; i < DV_COUNT(dirs); i++)
        dv_trial_remove_file(trial, fill[i]);
    dv_dra_check_cdi(link, dv_dra_prepare(link, claim), "when the disk has room again");
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "prepare.one",
     .proves = "a claim is prepared, in time",
     .matters = "the first thing every pod with a claim needs",
     .protocol = "NodePrepareResources names claims by namespace, name and UID; the driver reads "
                 "the allocation from the API",
     .needs = DV_NEEDS_SLICES,
     .run = run_one},
    {.id = "prepare.idempotent",
     .proves = "a prepared claim is prepared again with the same answer",
     .matters = "the kubelet repeats calls whose answer was lost, and after its own restart",
     .protocol = "NodePrepareResources must be idempotent",
     .needs = DV_NEEDS_SLICES,
     .run = run_idempotent},
    {.id = "prepare.parallel",
     .proves = "calls at the same time do not disturb each other",
     .matters = "pods start together after a reboot; shared state without a lock mixes them up",
     .protocol = "calls about different claims may overlap, and those about one may be repeated",
     .needs = DV_NEEDS_SLICES,
     .run = run_parallel},
    {.id = "prepare.several-claims",
     .proves = "several claims in one call are each answered with their own devices",
     .matters = "all claims of a pod come in one call; most tests of drivers have one",
     .protocol = "claims is a map from UID to answer",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_TWO,
     .run = run_several},
    {.id = "prepare.partial-failure",
     .proves = "a claim that fails is told as failed, also beside one that succeeds",
     .matters = "a success for a claim that is not prepared starts a pod without its device",
     .protocol = "an error for the claim, or for the call as a whole",
     .needs = DV_NEEDS_SLICES,
     .run = run_partial},
    {.id = "prepare.unknown-claim",
     .proves = "a claim that the API does not have is refused, and the driver goes on",
     .matters = "drivers that take what they have in a cache prepare claims that are gone",
     .protocol = "the claim is read from the API by each call",
     .needs = DV_NEEDS_SLICES,
     .run = run_unknown},
    {.id = "prepare.not-allocated",
     .proves = "a claim without an allocation is refused",
     .matters = "status.allocation is absent while a claim is deallocated; drivers that do not "
                "look crash, or say yes",
     .protocol = "\"claim not allocated\" is an error of the claim",
     .needs = DV_NEEDS_SLICES,
     .run = run_unallocated},
    {.id = "prepare.replaced-claim",
     .proves = "a claim of the same name with another UID is refused",
     .matters = "a claim was deleted and made again: the pod of the old one gets the devices of "
                "the new one",
     .protocol = "the UID of the request has to be that of the API's object",
     .needs = DV_NEEDS_SLICES,
     .run = run_replaced},
    {.id = "prepare.deleted-meanwhile",
     .proves = "a claim that was deleted meanwhile is refused",
     .matters = "its devices are free by then, and may be another pod's",
     .protocol = "the claim is read from the API by each call",
     .needs = DV_NEEDS_SLICES,
     .run = run_deleted},
    {.id = "prepare.shared-claim",
     .proves = "a second pod of a shared claim gets the same",
     .matters = "drivers that keep one claim forget the other pods of it",
     .protocol = "several pods may have a claim; it is prepared for each, unprepared after the "
                 "last",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_TWO,
     .run = run_shared},
    {.id = "prepare.admin-access",
     .proves = "a claim with admin access is prepared for a device that is in use, and its end "
               "leaves that alone",
     .matters = "monitors with admin access take the device away from its user when they end",
     .protocol = "adminAccess allows a device that others hold",
     .needs = DV_NEEDS_SLICES,
     .run = run_admin},
    {.id = "prepare.good-config",
     .proves = "parameters that --claim has for the driver are accepted",
     .matters = "a config in a claim or class is what users write; what is documented has to work",
     .protocol = "opaque parameters are in the claim's allocation, for the driver that they name",
     .needs = DV_NEEDS_SLICES,
     .run = run_config_good},
    {.id = "prepare.bad-config",
     .proves = "parameters that cannot be understood are refused",
     .matters = "a typing mistake in a config is passed over, and the device runs as nobody meant",
     .protocol = "errors of parameters are errors of the claim",
     .needs = DV_NEEDS_SLICES,
     .run = run_config_bad},
    {.id = "prepare.after-restart",
     .proves = "a claim that was prepared before a restart of the driver has the same answer",
     .matters = "drivers are updated while pods run; state that is in memory only is lost",
     .protocol = "prepared claims outlive the driver's process",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_RESTART,
     .run = run_after_restart},
    {.id = "prepare.after-kill",
     .proves = "a claim that was prepared before the driver was killed has the same answer",
     .matters = "what is written at the end of the process is lost by a kill",
     .protocol = "prepared claims outlive the driver's process",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_RESTART,
     .run = run_after_kill},
    {.id = "prepare.killed-in-call",
     .proves = "a driver that was killed while it prepared a claim can prepare it afterwards",
     .matters = "half-written checkpoints and specs, or locks without an owner, block the claim "
                "for ever",
     .protocol = "the kubelet repeats the call until it succeeds",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_RESTART,
     .run = run_kill_in_call},
    {.id = "prepare.after-reboot",
     .proves = "after a reboot the claim is prepared anew, with its CDI spec",
     .matters = "the CDI spec of a prepared claim is gone with /var/run; a driver that only looks "
                "at its checkpoint answers success without making it again",
     .protocol = "after a reboot the kubelet prepares the claims of its pods again",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_RESTART,
     .run = run_after_reboot},
    {.id = "prepare.disk-full",
     .proves = "without room for its files the driver says so, and recovers",
     .matters = "an empty spec on a full disk is a success for the driver, and an error of the "
                "runtime",
     .protocol = "the answer is an error as long as the CDI spec is not there",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_PROCESS,
     .run = run_disk_full},
};
/* clang-format on */

const struct dv_verify_group dv_dra_prepare_cases = {DV_VERIFY_DRA, cases, DV_COUNT(cases)};
