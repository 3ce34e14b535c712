/* claim_handle.c - what drivers before 1.31 were handed with a claim, made from an allocation of
 * today.
 *
 *     4 resource_handle             text; then: what the driver's own controller had written
 *     5 structured_resource_handle  1.30: what the scheduler had chosen
 *         1 vendorClassParameters   { 1 raw }
 *         2 vendorClaimParameters   { 1 raw }
 *         4 nodeName
 *         5 results                 { 1 vendorRequestParameters { 1 raw }, 2 { 1 { 1 name } } }
 *
 * Both are sent: a driver of one design does not look at the field of the other. Parameters are the
 * driver's opaque configuration, from the class, for the whole claim, or for the request of a
 * result; of several for one place the last counts, as configuration of a claim comes after that of
 * its classes. The text is the claim's parameters, or else the class's. */
#include "base/buf.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/state/claim_state.h"
#include "pb/pb.h"
#include "resource/resource.h"

enum {
    STRUCTURED_HANDLE = 5,
    CLASS_PARAMETERS = 1,
    CLAIM_PARAMETERS = 2,
    NODE_NAME = 4,
    RESULT = 5,
    REQUEST_PARAMETERS = 1,
    RESULT_MODEL = 2,
    NAMED_RESOURCES = 1,
    RAW = 1,
    NAME = 1,
};

/* Whether the configuration is for the request; a request with alternatives is named whole, or by
 * the one that was chosen. */
static bool is_for(const struct dv_api_device_allocation_configuration *config, dv_str request)
{
    dv_str whole = dv_str_slice(request, 0, dv_str_find_char(request, '/'));

    for (size_t i = 0; i < config->n_requests; i++)
        if (dv_str_eq(config->requests[i], request) || dv_str_eq(config->requests[i], whole))
            return true;
    return false;
}

/* The driver's parameters from that source: those for the request or, without one, those that name
 * none. Those of a class name the requests that are for it, and are taken for whichever. */
static dv_str parameters_of(const struct dv_api_device_allocation_result *devices, dv_str driver,
                            const char *source, dv_str request)
{
    bool is_class = dv_str_eq(dv_str_from_c(source), DV_STR("FromClass"));
    dv_str found = DV_STR_NONE;

    for (size_t i = 0; i < devices->n_config; i++) {
        const struct dv_api_device_allocation_configuration *config = &devices->config[i];
        const struct dv_api_opaque_device_configuration *opaque =
            config->device_configuration.opaque;

        if (!opaque || !dv_str_eq(opaque->driver, driver) ||
            !dv_str_eq(config->source, dv_str_from_c(source)))
            continue;
        if (is_class || (request.n > 0 ? is_for(config, request) : config->n_requests == 0))
            found = opaque->parameters;
    }
    return found;
}

static void add_raw(struct dv_buf *buf, uint32_t number, dv_str raw)
{
    size_t mark;

    if (raw.n == 0)
        return;
    mark = dv_pb_begin(buf, number);
    dv_pb_add_bytes(buf, RAW, raw);
    dv_pb_end(buf, mark);
}

static void add_result(struct dv_buf *buf, dv_str device, dv_str parameters)
{
    size_t result = dv_pb_begin(buf, RESULT);
    size_t model;
    size_t named;

    add_raw(buf, REQUEST_PARAMETERS, parameters);
    model = dv_pb_begin(buf, RESULT_MODEL);
    named = dv_pb_begin(buf, NAMED_RESOURCES);
    dv_pb_add_bytes(buf, NAME, device);
    dv_pb_end(buf, named);
    dv_pb_end(buf, model);
    dv_pb_end(buf, result);
}

void dv_claim_handle_encode(const struct dv_api_resource_claim *object, dv_str driver, dv_str node,
                            struct dv_buf *buf)
{
    const struct dv_api_device_allocation_result *devices = &object->status.allocation->devices;
    dv_str class = parameters_of(devices, driver, "FromClass", DV_STR_NONE);
    dv_str claim = parameters_of(devices, driver, "FromClaim", DV_STR_NONE);
    size_t mark;

    if (claim.n > 0 || class.n > 0)
        dv_pb_add_bytes(buf, DV_CLAIM_HANDLE_FIELD, claim.n > 0 ? claim : class);
    mark = dv_pb_begin(buf, STRUCTURED_HANDLE);
    add_raw(buf, CLASS_PARAMETERS, class);
    add_raw(buf, CLAIM_PARAMETERS, claim);
    dv_pb_add_bytes(buf, NODE_NAME, node);
    for (size_t i = 0; i < devices->n_results; i++) {
        const struct dv_api_device_request_allocation_result *result = &devices->results[i];

        if (dv_str_eq(result->driver, driver))
            add_result(buf, result->device,
                       parameters_of(devices, driver, "FromClaim", result->request));
    }
    dv_pb_end(buf, mark);
}
