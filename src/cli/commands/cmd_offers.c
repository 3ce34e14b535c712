/* cmd_offers.c - davit offers: what is offered without a driver, and what comes of it. */
#include <stdio.h>

#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h"

static const char *nodes_text(struct dv_cli *cli, const NodeV1__OfferedDevice *device)
{
    dv_str text = dv_str_from_c(device->cdi_device);

    for (size_t i = 0; i < device->n_nodes && device->cdi_device[0] == '\0'; i++)
        text = dv_str_printf(cli->arena, "%.*s%s%s", DV_FMT(text), i ? "," : "", device->nodes[i]);
    return dv_cli_plain(text, cli->arena);
}

static const char *is_text(struct dv_cli *cli, const NodeV1__OfferedDevice *device)
{
    const dv_str texts[] = {dv_str_from_c(device->vendor), DV_STR(" "),
                            dv_str_from_c(device->product), DV_STR(" "),
                            dv_str_from_c(device->serial)};

    return dv_cli_plain(dv_str_trim(dv_str_concat(texts, DV_COUNT(texts), cli->arena)), cli->arena);
}

static const char *held_text(struct dv_cli *cli, const NodeV1__OfferedDevice *device)
{
    if (device->n_claims <= 1)
        return dv_cli_plain(dv_str_from_c(device->claim), cli->arena);
    return dv_cli_plain(dv_str_printf(cli->arena, "%s and %llu more", device->claim,
                                      (unsigned long long)device->n_claims - 1),
                        cli->arena);
}

static void print_table(struct dv_cli *cli, const NodeV1__ListOffersResponse *list)
{
    static const char *const headers[] = {"OFFER", "DEVICE", "NODES", "IS", "CLAIM"};
    struct dv_table table;

    dv_cli_table_init(cli, &table, headers, DV_COUNT(headers));
    for (size_t i = 0; i < list->n_offers; i++) {
        const NodeV1__Offer *offer = list->offers[i];

        for (size_t k = 0; k < offer->n_devices; k++) {
            dv_table_add(&table, offer->name);
            dv_table_add(&table, offer->devices[k]->name);
            dv_table_add(&table, nodes_text(cli, offer->devices[k]));
            dv_table_add(&table, is_text(cli, offer->devices[k]));
            dv_table_add(&table, held_text(cli, offer->devices[k]));
        }
    }
    dv_cli_print_table(cli, &table, 2, "no devices: nothing on this machine is what is offered");
}

enum dv_exit dv_cmd_offers(struct dv_cli *cli)
{
    NodeV1__ListOffersRequest request = NODE_V1__LIST_OFFERS_REQUEST__INIT;
    const NodeV1__ListOffersResponse *list;
    enum dv_exit exit;

    if (cli->n_words > 0)
        return dv_cli_complain_usage("offers", "it takes no words");
    list = dv_cli_call(cli, "/davit.node.v1.Node/ListOffers", &request.base,
                       &node_v1__list_offers_response__descriptor, &exit);
    if (!list)
        return exit;
    if (!dv_cli_is_table(cli)) {
        dv_cli_print_message(cli, &list->base);
        return DV_EXIT_OK;
    }
    if (list->n_offers == 0) {
        (void)fputs("nothing is offered without a driver: davitd --offer NAME=DEVICES\n", stderr);
        return DV_EXIT_OK;
    }
    print_table(cli, list);
    for (size_t i = 0; i < list->n_offers; i++)
        for (size_t k = 0; k < list->offers[i]->n_notes; k++)
            (void)fprintf(stderr, "%s: %s\n", list->offers[i]->name,
                          dv_cli_plain(dv_str_from_c(list->offers[i]->notes[k]), cli->arena));
    return DV_EXIT_OK;
}
