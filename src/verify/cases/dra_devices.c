/* dra_devices.c - cases: the devices that NodePrepareResources answers with, and their CDI names.
 */
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "proto/dra_v1.pb-c.h"
#include "resource/resource.h"
#include "verify/cases/cases.h" /* IWYU pragma: keep */
#include "verify/kit/cdi_look.h"
#include "verify/kit/dra_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

static bool is_ours(const struct dv_trial *trial,
                    const struct dv_api_device_request_allocation_result *result)
{
    return dv_str_eq(result->driver, dv_str_from_c(trial->facts.name));
}

static bool is_of(const DraV1__Device *device,
                  const struct dv_api_device_request_allocation_result *result)
{
    return dv_str_eq(result->pool, dv_str_from_c(device->pool_name)) &&
           dv_str_eq(result->device, dv_str_from_c(device->device_name));
}

/* Of a request with alternatives the part before the slash. */
static dv_str request_of(const struct dv_api_device_request_allocation_result *result)
{
    return dv_str_slice(result->request, 0, dv_str_find_char(result->request, '/'));
}

static bool has_answer(const dv_prepared *prepared,
                       const struct dv_api_device_request_allocation_result *result)
{
    for (size_t i = 0; i < prepared->n_devices; i++)
        if (is_of(prepared->devices[i], result))
            return true;
    return false;
}

/* Fails when the answer has other devices than the claim. */
static void check_devices(struct dv_trial *trial, const struct dv_test_claim *claim,
                          const dv_prepared *prepared)
{
    const struct dv_api_device_allocation_result *given = &claim->allocation->devices;

    for (size_t i = 0; i < prepared->n_devices; i++)
        if (!dv_claim_has_result(claim, prepared->devices[i]))
            dv_trial_fail(trial,
                          "the answer has device \"%s\" of pool \"%s\", which the claim was "
                          "not given",
                          prepared->devices[i]->device_name, prepared->devices[i]->pool_name);
    for (size_t i = 0; i < given->n_results; i++)
        if (is_ours(trial, &given->results[i]) && !has_answer(prepared, &given->results[i]))
            dv_trial_fail(trial,
                          "the claim was given device \"%.*s\" of pool \"%.*s\", which the answer "
                          "does not have",
                          DV_FMT(given->results[i].device), DV_FMT(given->results[i].pool));
}

static void run_devices(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_PLAIN);
    const dv_prepared *prepared = dv_dra_prepare(link, claim);

    if (prepared->n_devices == 0)
        dv_trial_skip(trial,
                      "the answer names no device, which is right for a driver that reaches "
                      "containers by other ways; if yours does not: --require prepare.devices");
    check_devices(trial, claim, prepared);
}

/* Whether the claim was given the device for that request. */
static bool is_for(const struct dv_test_claim *claim, const DraV1__Device *device,
                   const char *request)
{
    const struct dv_api_device_allocation_result *given = &claim->allocation->devices;

    for (size_t i = 0; i < given->n_results; i++)
        if (is_of(device, &given->results[i]) &&
            dv_str_eq(request_of(&given->results[i]), dv_str_from_c(request)))
            return true;
    return false;
}

static void check_requests(struct dv_trial *trial, const struct dv_test_claim *claim,
                           const DraV1__Device *device)
{
    if (device->n_request_names == 0)
        dv_trial_fail(
            trial, "device \"%s\" has no request name: every container of the claim would get it",
            device->device_name);
    for (size_t i = 0; i < device->n_request_names; i++)
        if (!is_for(claim, device, device->request_names[i]))
            dv_trial_fail(trial, "device \"%s\" is not for the request \"%s\" of the claim",
                          device->device_name, device->request_names[i]);
}

static void run_request_names(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claim = dv_claim_make(link, DV_CLAIM_TWO);
    const dv_prepared *prepared = dv_dra_prepare(link, claim);

    if (prepared->n_devices == 0)
        dv_trial_skip(trial, "the answer names no device");
    check_devices(trial, claim, prepared);
    for (size_t i = 0; i < prepared->n_devices; i++)
        check_requests(trial, claim, prepared->devices[i]);
}

static void run_cdi_ids(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    const dv_prepared *prepared = dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));

    if (dv_prepared_n_cdi(prepared) == 0)
        dv_trial_skip(trial,
                      "the answer has no CDI name, which is right for a driver that reaches "
                      "containers by other ways; if yours does not: --require prepare.cdi-ids");
    dv_dra_check_cdi(link, prepared, "after the answer");
}

static void run_cdi_host(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    const dv_prepared *prepared = dv_dra_prepare(link, dv_claim_make(link, DV_CLAIM_PLAIN));
    struct dv_err err;

    if (dv_prepared_n_cdi(prepared) == 0)
        dv_trial_skip(trial, "the driver gives no CDI names");
    for (size_t i = 0; i < prepared->n_devices; i++)
        for (size_t j = 0; j < prepared->devices[i]->n_cdi_device_ids; j++)
            if (!dv_cdi_look_at_host(trial, dv_str_from_c(prepared->devices[i]->cdi_device_ids[j]),
                                     &err))
                dv_trial_fail(trial, "a runtime cannot start the container: %s", err.msg);
}

/* Names that all claims have, for what all containers get, are fine beside others. */
static bool has_own_name(const dv_prepared *prepared, const dv_prepared *other)
{
    for (size_t i = 0; i < prepared->n_devices; i++)
        for (size_t j = 0; j < prepared->devices[i]->n_cdi_device_ids; j++)
            if (!dv_prepared_has_cdi(other, prepared->devices[i]->cdi_device_ids[j]))
                return true;
    return false;
}

static const char *first_name(const dv_prepared *prepared)
{
    for (size_t i = 0; i < prepared->n_devices; i++)
        if (prepared->devices[i]->n_cdi_device_ids > 0)
            return prepared->devices[i]->cdi_device_ids[0];
    return "";
}

/* One device may be given to several claims: shares of it. */
static bool has_same_device(const struct dv_test_claim *a, const struct dv_test_claim *b)
{
    for (size_t i = 0; i < a->allocation->devices.n_results; i++)
        for (size_t j = 0; j < b->allocation->devices.n_results; j++)
            if (dv_str_eq(a->allocation->devices.results[i].pool,
                          b->allocation->devices.results[j].pool) &&
                dv_str_eq(a->allocation->devices.results[i].device,
                          b->allocation->devices.results[j].device))
                return true;
    return false;
}

static void run_cdi_unique(struct dv_trial *trial)
{
    struct dv_dra_link *link = dv_dra_link_begin(trial);
    struct dv_test_claim *claims[2] = {dv_claim_make(link, DV_CLAIM_PLAIN),
                                       dv_claim_make(link, DV_CLAIM_PLAIN)};
    const dv_prepared *first = dv_dra_prepare(link, claims[0]);
    const dv_prepared *second = dv_dra_prepare(link, claims[1]);

    dv_dra_check_cdi(link, first, "when another claim is prepared");
    if (dv_prepared_n_cdi(first) == 0)
        dv_trial_skip(trial, "the driver gives no CDI names");
    if (!has_same_device(claims[0], claims[1]) &&
        (!has_own_name(first, second) || !has_own_name(second, first)))
        dv_trial_fail(trial,
                      "two claims for different devices have the same CDI names, such as \"%s\": "
                      "both containers would get the same",
                      first_name(first));
}

/* clang-format off */
static const struct dv_verify_case cases[] = {
    {.id = "prepare.devices",
     .proves = "the answer has exactly the devices that the claim was given",
     .matters = "the kubelet tells pods and monitors what the driver answers: a device too few has "
                "no CDI name, one too many is another pod's",
     .protocol = "devices has an entry for each result of the driver in the claim's allocation",
     .needs = DV_NEEDS_SLICES,
     .run = run_devices},
    {.id = "prepare.request-names",
     .proves = "of a claim with two requests each device carries the name of its own",
     .matters = "containers choose by request; without names every container gets all devices, with "
                "those of others each gets the wrong one",
     .protocol = "request_names are those of the device's results in the claim's allocation, without "
                 "the alternative after the slash",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_TWO,
     .run = run_request_names},
    {.id = "prepare.cdi-ids",
     .proves = "every device has CDI names, and specs have them when the answer comes",
     .matters = "the runtime looks at once: \"unresolvable CDI devices\", and the pod is stuck",
     .protocol = "cdi_device_ids are VENDOR/CLASS=DEVICE of specs that exist when the call returns",
     .needs = DV_NEEDS_SLICES,
     .run = run_cdi_ids},
    {.id = "prepare.cdi-host",
     .proves = "device nodes, mounts and hooks of CDI specs are on the host",
     .matters = "the container's start fails with \"no such file\", long after the claim was prepared",
     .protocol = "hostPath and the paths of hooks are the host's; a device node without its numbers is "
                 "looked up there",
     .needs = DV_NEEDS_SLICES,
     .run = run_cdi_host},
    {.id = "prepare.cdi-unique",
     .proves = "claims for different devices have different CDI names",
     .matters = "one name for two specs is a conflict, and a runtime refuses both",
     .protocol = "a CDI name is resolved by the name alone",
     .needs = DV_NEEDS_SLICES | DV_NEEDS_TWO,
     .run = run_cdi_unique},
};
/* clang-format on */

const struct dv_verify_group dv_dra_device_cases = {DV_VERIFY_DRA, cases, DV_COUNT(cases)};
