/* node_offers.c - what is offered without a driver, as davit.node.v1 tells it. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "builtin/builtin.h"
#include "grpc/grpc.h"
#include "offer/offer.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* An offer's text with all its settings. */
#define TEXT_BYTES_MAX 65536u

static NodeV1__OfferedDevice *device_message(const struct dv_builtin_driver *builtin,
                                             const struct dv_offer_device *device,
                                             struct dv_arena *arena)
{
    const struct dv_offer_part *part = device->usb ? device->usb : device->pci;
    NodeV1__OfferedDevice *message = DV_NEW(arena, NodeV1__OfferedDevice);
    size_t n_claims;

    node_v1__offered_device__init(message);
    message->name = dv_str_to_c(device->name, arena);
    message->nodes = DV_NEW_ARRAY(arena, const char *, device->n_nodes);
    for (size_t i = 0; i < device->n_nodes; i++)
        message->nodes[message->n_nodes++] = dv_str_to_c(device->nodes[i]->path, arena);
    if (device->cdi)
        message->cdi_device = dv_str_to_c(device->cdi->name, arena);
    if (part) {
        message->vendor =
            dv_str_to_c(part->vendor_name.n > 0 ? part->vendor_name : part->vendor, arena);
        message->product =
            dv_str_to_c(part->product_name.n > 0 ? part->product_name : part->product, arena);
        message->serial = dv_str_to_c(part->serial, arena);
    }
    message->claim = dv_str_to_c(dv_builtin_holder(builtin, device->name, &n_claims), arena);
    message->n_claims = n_claims;
    return message;
}

static void add_devices(const struct dv_builtin_driver *builtin, const struct dv_offer *offer,
                        const struct dv_offer_list *list, NodeV1__Offer *message,
                        struct dv_arena *arena)
{
    const char *problem = dv_builtin_class_problem(builtin, offer);

    message->devices = DV_NEW_ARRAY(arena, NodeV1__OfferedDevice *, list->n_devices);
    for (size_t i = 0; i < list->n_devices; i++)
        if (list->devices[i].offer == offer)
            message->devices[message->n_devices++] =
                device_message(builtin, &list->devices[i], arena);
    message->notes = DV_NEW_ARRAY(arena, const char *, list->n_notes + 1);
    for (size_t i = 0; i < list->n_notes; i++)
        if (list->notes[i].offer == offer)
            message->notes[message->n_notes++] = dv_str_to_c(list->notes[i].text, arena);
    if (problem)
        message->notes[message->n_notes++] = dv_str_to_c(dv_str_from_c(problem), arena);
}

static NodeV1__Offer *offer_message(const struct dv_offer *offer, struct dv_arena *arena)
{
    NodeV1__Offer *message = DV_NEW(arena, NodeV1__Offer);
    struct dv_buf buf;

    node_v1__offer__init(message);
    message->name = dv_str_to_c(offer->name, arena);
    message->class_ = dv_str_to_c(offer->class_name, arena);
    message->resource = dv_str_to_c(offer->resource, arena);
    message->origin = dv_str_to_c(offer->origin, arena);
    message->shared = offer->is_shared;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_offer_print(offer, &buf);
    message->text = dv_str_to_c(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return message;
}

void dv_node_handle_list_offers(void *ctx, struct dv_server_call *call, dv_str request)
{
    const struct dv_node_server *server = ctx;
    const struct dv_builtin_driver *builtin = server->node->builtin;
    struct dv_arena *arena = dv_arena_new();
    NodeV1__ListOffersResponse *response = DV_NEW(arena, NodeV1__ListOffersResponse);

    (void)request; /* has no fields */
    node_v1__list_offers_response__init(response);
    if (builtin) {
        struct dv_builtin_view view = dv_builtin_view(builtin);

        response->offers = DV_NEW_ARRAY(arena, NodeV1__Offer *, view.offers->n);
        for (size_t i = 0; i < view.offers->n; i++) {
            NodeV1__Offer *message = offer_message(&view.offers->v[i], arena);

            add_devices(builtin, &view.offers->v[i], view.list, message, arena);
            response->offers[response->n_offers++] = message;
        }
    }
    dv_serve_reply_long(call, server->node->loop, &response->base, arena);
}
