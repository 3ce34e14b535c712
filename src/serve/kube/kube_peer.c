/* kube_peer.c - the own APIs of nodes, which answer what is asked of their pods' containers: where
 * they are, how they are known, and how this API is known to them.
 *
 * A node has written the key of its certificate into its Node object: who is found at the node's
 * address and has another key is not talked to, so a wrong address gives nothing away. This API
 * shows a token that is made of a secret of this process and the node's name. Reviews of the
 * token, which the node asks this API for, name a user who has rights on that one node; here it is
 * no user at all. So a node that keeps the token can do nothing with it. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "pod/agent.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"

/* Before the name of the node in a token. */
#define TOKEN_PREFIX "davit-node-proxy."
/* How long a node may take to answer: it asks this API about us, then its container runtime. */
#define CONNECT_MS 30000u
/* How much of a node's text is repeated. */
#define TEXT_BYTES_MAX 4096u

/* ---- the token ---- */

static dv_str secret_of(const struct dv_kube *kube)
{
    return (dv_str){kube->peer_secret, sizeof(kube->peer_secret)};
}

/* "davit-node-proxy.n2.HASH". The secret is hashed twice, so that who knows the hash for one name
 * cannot go on from it to that of a longer one. */
static dv_str make_token(const struct dv_kube *kube, dv_str node, struct dv_arena *arena)
{
    dv_str secret = secret_of(kube);
    dv_str inner = dv_str_printf(arena, "%.*s\n%.*s", DV_FMT(secret), DV_FMT(node));
    dv_str outer = dv_str_printf(arena, "%.*s\n%.*s", DV_FMT(secret),
                                 DV_FMT(dv_rest_sha256_hex(inner, arena)));

    return dv_str_printf(arena, TOKEN_PREFIX "%.*s.%.*s", DV_FMT(node),
                         DV_FMT(dv_rest_sha256_hex(outer, arena)));
}

/* Returns the name in a token; empty: it is no such token. */
static dv_str node_in(dv_str token)
{
    const dv_str prefix = DV_STR(TOKEN_PREFIX);
    size_t end = token.n;

    if (!dv_str_starts_with(token, prefix))
        return DV_STR_NONE;
    while (end > prefix.n && token.p[end - 1] != '.')
        end--;
    return dv_str_slice(token, prefix.n, end > prefix.n ? end - 1 : prefix.n);
}

bool dv_kube_is_peer_token(const struct dv_kube *kube, dv_str token, struct dv_arena *arena,
                           struct dv_api_user_info *user)
{
    dv_str node = node_in(token);
    dv_str wanted;

    if (node.n == 0)
        return false;
    wanted = make_token(kube, node, arena);
    /* Hashes are compared, so that the time that it takes tells nothing of the token. */
    if (!dv_str_eq(dv_rest_sha256_hex(token, arena), dv_rest_sha256_hex(wanted, arena)))
        return false;
    *user = dv_auth_node_proxy(dv_str_copy(node, arena), arena);
    return true;
}

/* ---- the node ---- */

/* Returns the address under which others find the node; empty: it has none. */
static dv_str address_of(const struct dv_api_node *node)
{
    static const dv_str types[] = {
        DV_STR_INIT("InternalIP"),
        DV_STR_INIT("ExternalIP"),
        DV_STR_INIT("InternalDNS"),
        DV_STR_INIT("Hostname"),
    };

    for (size_t k = 0; k < DV_COUNT(types); k++)
        for (size_t i = 0; i < node->status.n_addresses; i++)
            if (dv_str_eq(node->status.addresses[i].type, types[k]))
                return node->status.addresses[i].address;
    return DV_STR_NONE;
}

static bool refuse(struct dv_kube_call *call, const struct dv_api_status *status)
{
    dv_kube_reply_status(call, status);
    return false;
}

static bool refuse_node(struct dv_kube_call *call, dv_str node, const char *why)
{
    return refuse(call, dv_status_new(503, DV_STR("ServiceUnavailable"), call->arena,
                                      "the pod is on node \"%.*s\", %s", DV_FMT(node), why));
}

static bool open_client(struct dv_kube_call *call, dv_str name, dv_str url, dv_str key,
                        struct dv_rest_client **client)
{
    const struct dv_rest_client_options options = {
        .base_url = url, .key_pin = key, .connections_max = 1, .connect_timeout_ms = CONNECT_MS};
    struct dv_err err;

    *client = dv_rest_client_open(call->kube->options.loop, &options, &err);
    if (!*client) {
        dv_kube_reply_peer_error(call, "error dialing backend: ", &err);
        return false;
    }
    dv_rest_client_set_token(*client, make_token(call->kube, name, call->arena));
    return true;
}

bool dv_kube_open_peer(struct dv_kube_call *call, dv_str name, struct dv_rest_client **client)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_NODE);
    const struct dv_status_about about = {
        .kind = kind, .version = call->route.api_version, .name = name};
    const struct dv_object *object =
        dv_embedded_get(call->kube->options.embedded, kind, DV_STR_NONE, name);
    const struct dv_api_node *node = object ? object->value : NULL;
    const struct dv_str_entry *key;
    dv_str address;
    int64_t port;

    if (!node)
        return refuse(call, dv_status_not_found(&about, call->arena));
    port = node->status.daemon_endpoints.kubelet_endpoint.port;
    key = dv_entry_find(object->meta->annotations, object->meta->n_annotations,
                        DV_STR(DV_NODE_API_KEY));
    address = address_of(node);
    if (port < 1 || port > UINT16_MAX)
        return refuse_node(call, name,
                           "which serves no API of its own: davitd there needs --node-listen");
    if (!key)
        return refuse_node(call, name,
                           "whose own API cannot be recognized: its annotation " DV_NODE_API_KEY
                           " is missing, which davitd writes there");
    if (address.n == 0)
        return refuse_node(call, name, "which has no address");
    return open_client(call, name,
                       dv_str_printf(call->arena,
                                     dv_str_find_char(address, ':') < address.n
                                         ? "https://[%.*s]:%d"
                                         : "https://%.*s:%d",
                                     DV_FMT(address), (int)port),
                       key->value, client);
}

/* ---- refusals ---- */

void dv_kube_reply_peer_refusal(struct dv_kube_call *call, dv_str node, unsigned code, dv_str text)
{
    struct dv_arena *arena = call->arena;

    text = dv_str_trim(dv_str_slice(text, 0, TEXT_BYTES_MAX));
    if (!dv_str_is_utf8(text))
        text = DV_STR("");
    if (code == 400)
        (void)refuse(call, dv_status_bad_request(arena, "%.*s", DV_FMT(text)));
    else if (code == 404)
        (void)refuse(call, dv_status_new(404, DV_STR("NotFound"), arena, "%.*s", DV_FMT(text)));
    else if (code == 429)
        (void)refuse(call, dv_status_too_many_requests(1, arena, "%.*s", DV_FMT(text)));
    else if (code == 503)
        (void)refuse(call,
                     dv_status_new(503, DV_STR("ServiceUnavailable"), arena, "%.*s", DV_FMT(text)));
    else if (code == 401 || code == 403) /* that is not for the client, who may have what it asks */
        (void)refuse(call, dv_status_new(500, DV_STR("InternalError"), arena,
                                         "Internal error occurred: node \"%.*s\" does not let this "
                                         "API in: %.*s",
                                         DV_FMT(node), DV_FMT(text)));
    else
        (void)refuse(call, dv_status_new(500, DV_STR("InternalError"), arena,
                                         "Internal error occurred: %.*s", DV_FMT(text)));
}

void dv_kube_reply_peer_error(struct dv_kube_call *call, const char *what, const struct dv_err *err)
{
    (void)refuse(call, dv_status_new(err->code == DV_CANCELLED ? 503 : 500, DV_STR_NONE,
                                     call->arena, "%s%s", what, err->msg));
}

void dv_kube_end_peer_calls(struct dv_kube *kube)
{
    struct dv_link *link;

    DV_LIST_EACH (&kube->peer_calls, link) {
        struct dv_kube_peer_call *peer_call = DV_CONTAINER(link, struct dv_kube_peer_call, link);

        peer_call->cancel(peer_call);
    }
}
