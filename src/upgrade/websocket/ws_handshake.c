/* ws_handshake.c - the texts that turn an HTTP request into a WebSocket: RFC 6455, section 4. */
#include <stdint.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "upgrade/upgrade.h"
#include "upgrade/websocket.h"
#include "upgrade/wire/sha1.h"
#include "upgrade/wire/words.h"

#define ACCEPT_SUFFIX "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* A key is 16 bytes in base64: 22 digits and two signs that nothing follows. */
static bool is_key(dv_str key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    if (key.n != DV_WS_KEY_BYTES - 1 || !dv_str_ends_with(key, DV_STR("==")))
        return false;
    for (size_t i = 0; i < key.n - 2; i++) {
        if (key.p[i] == '\0' || !strchr(digits, key.p[i]))
            return false;
    }
    return true;
}

static void print_base64(const uint8_t *bytes, size_t n, char *text, size_t size)
{
    struct dv_buf buf;

    dv_buf_init(&buf, size);
    dv_base64_encode((dv_str){(const char *)bytes, n}, &buf);
    memcpy(text, dv_buf_c(&buf), buf.n + 1);
    dv_buf_fini(&buf);
}

static void print_accept(dv_str key, char accept[DV_WS_ACCEPT_BYTES])
{
    char text[DV_WS_KEY_BYTES + sizeof(ACCEPT_SUFFIX)];
    uint8_t digest[DV_SHA1_BYTES];

    memcpy(text, key.p, key.n);
    memcpy(text + key.n, ACCEPT_SUFFIX, sizeof(ACCEPT_SUFFIX));
    dv_sha1(dv_str_from_c(text), digest);
    print_base64(digest, sizeof(digest), accept, DV_WS_ACCEPT_BYTES);
}

bool dv_ws_accept(const struct dv_ws_fields *request, const dv_str *served, size_t n_served,
                  char accept[DV_WS_ACCEPT_BYTES], dv_str *protocol, struct dv_err *err)
{
    bool is_empty;
    size_t i;

    if (!dv_upgrade_is_asked(request->connection, request->upgrade, DV_STR("websocket")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "the request does not ask for a WebSocket");
    if (!dv_str_eq(request->version, DV_STR("13")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "the WebSocket version \"%.*s\" is not 13",
                       DV_FMT(dv_str_slice(request->version, 0, 32)));
    if (!is_key(request->key))
        return dv_fail(err, DV_INVALID_ARGUMENT, "Sec-WebSocket-Key is not 16 bytes in base64");
    i = dv_words_find_common(request->protocols, request->n_protocols, served, n_served, &is_empty);
    for (size_t k = 0; is_empty && k < n_served; k++) {
        if (served[k].n == 0)
            i = k;
    }
    if (i == n_served)
        return dv_fail(err, DV_PERMISSION_DENIED, "no WebSocket subprotocol of \"%.*s\" is served",
                       DV_FMT(request->n_protocols ? dv_str_slice(request->protocols[0], 0, 128)
                                                   : DV_STR_NONE));
    print_accept(request->key, accept);
    *protocol = served[i];
    return true;
}

void dv_ws_key(const uint8_t nonce[DV_WS_NONCE_BYTES], char key[DV_WS_KEY_BYTES])
{
    print_base64(nonce, DV_WS_NONCE_BYTES, key, DV_WS_KEY_BYTES);
}

bool dv_ws_check_answer(const struct dv_ws_fields *answer, dv_str key, const dv_str *offered,
                        size_t n_offered, dv_str *protocol, struct dv_err *err)
{
    char accept[DV_WS_ACCEPT_BYTES];
    bool is_empty;
    size_t i =
        dv_words_find_common(answer->protocols, answer->n_protocols, offered, n_offered, &is_empty);

    print_accept(key, accept);
    if (!dv_upgrade_is_asked(answer->connection, answer->upgrade, DV_STR("websocket")))
        return dv_fail(err, DV_INTERNAL, "the server has not changed to WebSocket");
    if (!dv_str_eq(dv_str_trim(answer->accept), dv_str_from_c(accept)))
        return dv_fail(err, DV_INTERNAL, "Sec-WebSocket-Accept does not belong to our key");
    if (answer->extensions.n > 0)
        return dv_fail(err, DV_INTERNAL, "the server uses an extension that was not offered");
    if (!is_empty && i == n_offered)
        return dv_fail(err, DV_INTERNAL, "the server chose a subprotocol that was not offered");
    *protocol = is_empty ? DV_STR_NONE : offered[i];
    return true;
}
