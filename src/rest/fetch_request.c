/* fetch_request.c - checks what a fetch sends, and sets libcurl up for it. */
#include <limits.h>
#include <stdlib.h>

#include "http1/http1.h"
#include "rest/rest.h"
#include "rest/rest_client.h"
#include "rest/rest_server.h"

/* How much of a field's name is quoted in a message. */
#define SHOWN_BYTES_MAX 80u

/* ---- what can be sent ---- */

static bool is_target(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] >= 0x7f || text.p[i] == '#')
            return false;
    return dv_str_starts_with(text, DV_STR("/"));
}

bool dv_rest_request_check(const struct dv_rest_client *client,
                           const struct dv_rest_request *request, struct dv_err *err)
{
    if (!dv_h1_is_token(request->method))
        return dv_fail(err, DV_INVALID_ARGUMENT, "no such method");
    if (!is_target(request->path))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "want a target that begins with '/' and has no "
                       "characters that must be encoded");
    for (size_t i = 0; i < request->n_fields; i++)
        if (!dv_h1_is_token(request->fields[i].name) ||
            !dv_rest_is_sendable(request->fields[i].value))
            return dv_fail(err, DV_INVALID_ARGUMENT, "bad header field \"%.*s\"",
                           DV_FMT(dv_str_slice(request->fields[i].name, 0, SHOWN_BYTES_MAX)));
    if (request->body.n > LONG_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "a body of %zu bytes", request->body.n);
    if (!dv_rest_is_sendable(dv_buf_str(&client->token)) || client->token.is_over)
        return dv_fail(err, DV_INVALID_ARGUMENT, "a bearer token that cannot be sent");
    return true;
}

/* ---- sending it ---- */

static struct curl_slist *append(struct curl_slist *list, const char *line)
{
    list = curl_slist_append(list, line);
    if (!list)
        abort(); /* out of memory */
    return list;
}

static void add_line(struct dv_rest_transfer *transfer, const char *line)
{
    transfer->fields = append(transfer->fields, line);
}

/* Connects to another place than the URL names: "::HOST:PORT" is for any host and port of it. */
static void connect_elsewhere(struct dv_rest_transfer *transfer)
{
    dv_str line = dv_str_printf(transfer->arena, "::%.*s", DV_FMT(transfer->fetch->connect_to));

    transfer->connect_to = append(NULL, dv_str_to_c(line, transfer->arena));
    (void)curl_easy_setopt(transfer->easy, CURLOPT_CONNECT_TO, transfer->connect_to);
}

static bool has_field(const struct dv_rest_fetch *fetch, dv_str name)
{
    for (size_t i = 0; i < fetch->n_fields; i++)
        if (dv_str_eq_nocase(fetch->fields[i].name, name))
            return true;
    return false;
}

static void add_fields(struct dv_rest_transfer *transfer)
{
    const struct dv_rest_fetch *fetch = transfer->fetch;

    for (size_t i = 0; i < fetch->n_fields; i++) {
        const struct dv_rest_field *field = &fetch->fields[i];
        dv_str line = field->value.n > 0
                          ? dv_str_printf(transfer->arena, "%.*s: %.*s", DV_FMT(field->name),
                                          DV_FMT(field->value))
                          : dv_str_printf(transfer->arena, "%.*s;", DV_FMT(field->name));

        add_line(transfer, dv_str_to_c(line, transfer->arena));
    }
    if (transfer->client->token.n > 0 && !has_field(fetch, DV_STR("Authorization")))
        add_line(transfer, dv_buf_c(&transfer->client->token));
    /* These keep libcurl from adding its own: an Expect that delays each large body, and a wrong
     * Content-Type for small ones. */
    if (!has_field(fetch, DV_STR("Expect")))
        add_line(transfer, "Expect:");
    if (!has_field(fetch, DV_STR("Content-Type")))
        add_line(transfer, "Content-Type:");
}

static void set_method(const struct dv_rest_transfer *transfer)
{
    const struct dv_rest_fetch *fetch = transfer->fetch;
    CURL *easy = transfer->easy;
    bool has_body = fetch->body.n > 0 || dv_str_eq(fetch->method, DV_STR("POST")) ||
                    dv_str_eq(fetch->method, DV_STR("PUT")) ||
                    dv_str_eq(fetch->method, DV_STR("PATCH"));

    if (dv_str_eq(fetch->method, DV_STR("HEAD"))) {
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (has_body) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)fetch->body.n);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, fetch->body.n > 0 ? fetch->body.p : "");
    }
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
                           dv_str_to_c(fetch->method, transfer->arena));
}

static void set_security(const struct dv_rest_client *client, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (client->ca.fd >= 0) {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca.path);
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* only the given CA is trusted */
    }
    if (client->key_pin)
        (void)curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, client->key_pin);
    if (client->is_unverified || client->key_pin) {
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (client->cert.fd >= 0) {
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT, client->cert.path);
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEY, client->key.path);
    }
}

/* The libcurl that we are built with knows all of these options. They fail only out of memory, and
 * then the last one does too. */
void dv_rest_client_set_up(const struct dv_rest_client *client, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* Do not wait for look-ups that were given up. */
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)INT_MAX); /* ours counts */
    if (client->socket_path)
        (void)curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->socket_path);
    set_security(client, easy);
}

void dv_rest_transfer_set_up(struct dv_rest_transfer *transfer)
{
    const struct dv_rest_client *client = transfer->client;
    CURL *easy = transfer->easy;
    dv_str url =
        dv_str_printf(transfer->arena, "%s%.*s", client->base_url, DV_FMT(transfer->fetch->target));

    dv_rest_client_set_up(client, easy);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, client->user_agent);
    add_fields(transfer);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->fields);
    set_method(transfer);
    if (transfer->fetch->connect_to.n > 0)
        connect_elsewhere(transfer);
    if (curl_easy_setopt(easy, CURLOPT_URL, dv_str_to_c(url, transfer->arena)) != CURLE_OK)
        abort(); /* out of memory */
}
