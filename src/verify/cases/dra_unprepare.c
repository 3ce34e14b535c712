/* dra_unprepare.c - cases: NodeUnprepareResources. */
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/dra_link.h"
#include "verify/kit/driver_calls.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

#define LEFT_MS 1000u
#define LOOK_MS 20u

static void run_one(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);

    (void)dv_dra_prepare(link, claim);
    dv_dra_unprepare(link, claim);
}

static void run_idempotent(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    struct dv_err err;

    (void)dv_dra_prepare(link, claim);
    dv_dra_unprepare(link, claim);
    if (!dv_dra_try_unprepare(link, claim, &err))
        dv_trial_fail(trial, "a second NodeUnprepareResources failed: %s", err.msg);
}

static void run_unknown(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_err err;

    if (!dv_dra_try_unprepare(link, dv_claim_invent(link), &err))
        dv_trial_fail(trial, "a claim that was never prepared cannot be unprepared: %s", err.msg);
}

static void run_gone_from_api(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    struct dv_err err;

    (void)dv_dra_prepare(link, claim);
    (void)dv_api_delete(trial, DV_KIND_CLAIM, claim->name);
    if (!dv_dra_try_unprepare(link, claim, &err))
        dv_trial_fail(trial, "a claim that is gone from the API cannot be unprepared: %s", err.msg);
}

static void run_without_api(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    struct dv_err err;

    (void)dv_dra_prepare(link, claim);
    dv_api_go_away(trial);
    if (!dv_dra_try_unprepare(link, claim, &err))
        dv_trial_fail(trial, "without the API a claim cannot be unprepared: %s", err.msg);
}

/* ---- what is left ---- */

/* What there is beside the driver's claims, as it was before one. */
struct rest {
    struct dv_trial *trial;
    const struct dv_child *process; /* NULL: it was running */
    dv_str dir;                     /* files in it are looked at */
    struct dv_listing files;
    size_t n_mounts;
    size_t n_processes;
};

static size_t n_processes(const struct rest *rest)
{
    return rest->process ? dv_child_n_members(rest->process) + dv_trial_n_orphans(rest->trial) : 0;
}

/* Files that a first claim brings, for all that follow, count as the driver's own: one is prepared
 * and unprepared before. */
static struct rest take_rest(struct dv_dra_link *link, dv_str dir)
{
    struct dv_trial *trial = link->trial;
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    struct rest rest = {.trial = trial, .process = link->process, .dir = dir};

    (void)dv_dra_prepare(link, claim);
    dv_dra_unprepare(link, claim);
    (void)dv_api_delete(trial, DV_KIND_CLAIM, claim->name); /* its device is free again */
    rest.files = dv_trial_list(trial, dir);
    rest.n_mounts = dv_trial_mounts(trial).n;
    rest.n_processes = n_processes(&rest);
    return rest;
}

/* The first file that was not there before, but for those of the API. */
static dv_str new_file(const struct rest *rest)
{
    struct dv_listing now = dv_trial_list(rest->trial, rest->dir);

    for (size_t i = 0; i < now.n; i++)
        if (!dv_str_starts_with(now.v[i], DV_STR("api.db")) &&
            dv_listing_news(&rest->files, &(struct dv_listing){&now.v[i], 1}).n > 0)
            return now.v[i];
    return DV_STR_NONE;
}

static bool is_file_left(const struct rest *rest)
{
    return new_file(rest).n > 0;
}

static bool is_mount_left(const struct rest *rest)
{
    return dv_trial_mounts(rest->trial).n > rest->n_mounts;
}

static bool is_process_left(const struct rest *rest)
{
    return n_processes(rest) > rest->n_processes;
}

/* For as long as helpers of the driver may take to end, and its files to be put in place. */
static bool stays(const struct rest *rest, bool (*is_left)(const struct rest *rest))
{
    for (unsigned ms = 0; is_left(rest) && ms < LEFT_MS; ms += LOOK_MS)
        dv_trial_pass(rest->trial, LOOK_MS);
    return is_left(rest);
}

static void run_after_restart(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct rest rest = take_rest(link, trial->paths.cdi);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    struct dv_err err;

    (void)dv_dra_prepare(link, claim);
    link = dv_dra_link_restart(link, true);
    if (!dv_dra_try_unprepare(link, claim, &err))
        dv_trial_fail(trial, "prepared before a restart, it cannot be unprepared: %s", err.msg);
    if (stays(&rest, is_file_left))
        dv_trial_fail(trial, "prepared before a restart, the claim leaves a CDI spec behind: %.*s",
                      DV_FMT(new_file(&rest)));
}

static void run_leaves_nothing(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct rest rest = take_rest(link, trial->paths.root);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);

    (void)dv_dra_prepare(link, claim);
    dv_dra_unprepare(link, claim);
    if (stays(&rest, is_file_left))
        dv_trial_fail(trial, "after NodeUnprepareResources a file is left behind: %.*s",
                      DV_FMT(new_file(&rest)));
    if (stays(&rest, is_mount_left))
        dv_trial_fail(trial, "after NodeUnprepareResources a mount is left behind");
    if (stays(&rest, is_process_left))
        dv_trial_fail(trial, "after NodeUnprepareResources a process is left behind");
}

static void run_no_spec(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct rest rest = take_rest(link, trial->paths.cdi);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);

    (void)dv_dra_prepare(link, claim);
    dv_dra_unprepare(link, claim);
    if (stays(&rest, is_file_left))
        dv_trial_fail(trial, "after NodeUnprepareResources the CDI spec is still there: %.*s",
                      DV_FMT(new_file(&rest)));
}

/* ---- claims beside each other ---- */

static void run_others_stay(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *first = dv_claim_make(link, DV_CLAIM_PLAIN);
    struct dv_test_claim *second = dv_claim_make(link, DV_CLAIM_PLAIN);
    const dv_prepared *kept = dv_dra_prepare(link, first);

    (void)dv_dra_prepare(link, second);
    dv_dra_unprepare(link, second);
    dv_dra_check_cdi(link, kept, "after the end of another claim");
}

static void run_again(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);

    for (int i = 0; i < 3; i++) {
        dv_dra_check_cdi(link, dv_dra_prepare(link, claim), "prepared once more");
        dv_dra_unprepare(link, claim);
    }
}

static void run_several(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claims[2] = {dv_claim_make(link, DV_CLAIM_PLAIN), dv_claim_invent(link)};
    struct dv_driver_call *call;
    struct dv_err err;

    (void)dv_dra_prepare(link, claims[0]);
    call = dv_dra_start(link, claims, 2, true);
    (void)dv_driver_finish(call);
    for (size_t i = 0; i < 2; i++)
        if (!dv_dra_undone(call, claims[i], &err))
            dv_trial_fail(trial, "of two claims in one call, claim %zu failed: %s", i + 1, err.msg);
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "unprepare.one",
     .proves = "a prepared claim is unprepared",
     .matters = "a pod that cannot be unprepared stays in Terminating for ever",
     .protocol = "NodeUnprepareResources after the last pod of the claim",
     .needs = DV_NEEDS_SLICES,
     .run = run_one},
    {.id = "unprepare.idempotent",
     .proves = "a claim that is unprepared already is a success",
     .matters = "the kubelet repeats calls whose answer was lost",
     .protocol = "NodeUnprepareResources must be idempotent",
     .needs = DV_NEEDS_SLICES,
     .run = run_idempotent},
    {.id = "unprepare.unknown-claim",
     .proves = "a claim that was never prepared is a success",
     .matters = "the kubelet unprepares what it is not sure of: failed prepares, lost checkpoints",
     .protocol = "unknown claims are not an error",
     .run = run_unknown},
    {.id = "unprepare.claim-gone",
     .proves = "a claim that is gone from the API can be unprepared",
     .matters = "pods that are deleted by force take their claims along; a driver that looks the "
                "claim up never frees the device",
     .protocol = "there is no look-up: namespace, name and UID are all there is",
     .needs = DV_NEEDS_SLICES,
     .run = run_gone_from_api},
    {.id = "unprepare.without-api",
     .proves = "unprepare needs no API",
     .matters = "while the control plane is away, pods end all the same",
     .protocol = "there is no look-up",
     .needs = DV_NEEDS_SLICES,
     .run = run_without_api},
    {.id = "unprepare.after-restart",
     .proves = "a claim that was prepared before the driver was killed is unprepared completely",
     .matters = "a driver that forgot the claim answers success and leaves the device configured",
     .protocol = "prepared claims outlive the driver's process",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_RESTART,
     .run = run_after_restart},
    {.id = "unprepare.cdi-spec",
     .proves = "the claim's CDI spec is removed",
     .matters = "specs of ended claims pile up, and let anybody who knows the name have the device",
     .protocol = "what prepare made, unprepare removes",
     .needs = DV_NEEDS_SLICES,
     .run = run_no_spec},
    {.id = "unprepare.leaves-nothing",
     .proves = "no file, mount or process of the claim is left behind",
     .matters = "what is left of thousands of pods fills disks and tables",
     .protocol = "what prepare made, unprepare removes",
     .needs = DV_NEEDS_SLICES,
     .run = run_leaves_nothing},
    {.id = "unprepare.others-stay",
     .proves = "the end of a claim leaves other claims alone",
     .matters = "a spec for all claims, or a directory for all, goes with the first pod that ends",
     .protocol = "claims are independent",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_TWO,
     .run = run_others_stay},
    {.id = "unprepare.prepare-again",
     .proves = "a claim can be prepared again after it was unprepared",
     .matters = "a claim that outlives its pods is prepared many times",
     .protocol = "the life of a claim on a node may begin again",
     .needs = DV_NEEDS_SLICES,
     .run = run_again},
    {.id = "unprepare.several-claims",
     .proves = "several claims in one call are each answered",
     .matters = "a missing entry counts as a failure, and the pod stays in Terminating",
     .protocol = "claims is a map from UID to answer, with every claim of the request",
     .needs = DV_NEEDS_SLICES,
     .run = run_several},
};
/* clang-format on */

const struct dv_verify_group dv_dra_unprepare_cases = {DV_VERIFY_DRA, cases, DV_COUNT(cases)};
