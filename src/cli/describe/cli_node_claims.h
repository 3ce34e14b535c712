/* cli_node_claims.h - what davitd on this machine has made of claims: beside what the API says. */
#ifndef DV_CLI_NODE_CLAIMS_H
#define DV_CLI_NODE_CLAIMS_H

#include "base/str.h"
#include "proto/davit_node_v1.pb-c.h"

struct dv_arena;
struct dv_cli;
struct dv_describe;

/* Asks davitd for all claims, in cli->arena; NULL, without a message, when no davitd
 * answers here. */
const NodeV1__ListClaimsResponse *dv_node_claims_ask(struct dv_cli *cli);
/* Finds a claim; NULL when this node does not have it. `claims` may be NULL. */
const NodeV1__Claim *dv_node_claims_find(const NodeV1__ListClaimsResponse *claims, dv_str uid);
/* "prepared", "preparing: waits for driver x", "unpreparing: <error>" */
const char *dv_node_claim_state(const NodeV1__Claim *claim, struct dv_arena *arena);
/* Prints what this node knows of a claim, as a part of its description. */
void dv_describe_node_claim(const struct dv_describe *d, const NodeV1__Claim *claim);

#endif
