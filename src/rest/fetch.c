/* fetch.c - a request that we send, from its start to the one callback that ends it. */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/gnutls.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/num.h"
#include "base/vec.h"
#include "rest/rest.h"
#include "rest/rest_client.h"
#include "rest/rest_server.h"

/* The default limit of an answer: a list of some ten thousand pods. */
#define BODY_BYTES_DEFAULT (64u * 1024u * 1024u)
/* The limit of all lines of an answer's header; API servers send a few hundred bytes. */
#define HEADER_BYTES_MAX (64u * 1024u)
/* How much of a target is quoted in a message, so that the reason fits after it. */
#define SHOWN_BYTES_MAX 80u
#define NEVER UINT64_MAX

/* ---- the end ---- */

/* Puts "GET https://host/path: " before the message, without the query, which can be long. */
static void name_fetch(const struct dv_rest_transfer *transfer, struct dv_err *err)
{
    const struct dv_rest_fetch *fetch = transfer->fetch;
    dv_str path = dv_str_slice(fetch->target, 0, dv_str_find_char(fetch->target, '?'));
    dv_str shown = dv_str_slice(path, 0, SHOWN_BYTES_MAX);
    dv_str base = dv_str_slice(dv_str_from_c(transfer->client->base_url), 0, SHOWN_BYTES_MAX);

    (void)dv_wrap(err, "%.*s %.*s%.*s%s", DV_FMT(dv_str_slice(fetch->method, 0, 16)), DV_FMT(base),
                  DV_FMT(shown), shown.n < path.n ? "..." : "");
}

static void end_with(struct dv_rest_transfer *transfer, const struct dv_err *err)
{
    if (transfer->is_ended)
        return;
    transfer->is_ended = true;
    transfer->err = *err;
    dv_timer_cancel(&transfer->timer);
    dv_link_remove(&transfer->link);
    dv_list_push(&transfer->client->ended, &transfer->link);
    dv_rest_client_work_later(transfer->client);
}

void dv_rest_transfer_end(struct dv_rest_transfer *transfer, enum dv_code code, const char *fmt,
                          ...)
{
    struct dv_err err;
    va_list args;

    va_start(args, fmt);
    (void)dv_vfail(&err, code, fmt, args);
    va_end(args);
    name_fetch(transfer, &err);
    end_with(transfer, &err);
}

static void take_fields(struct dv_rest_transfer *transfer)
{
    struct dv_rest_fetch *fetch = transfer->fetch;
    DV_VEC(struct dv_rest_field) fields = {0};
    struct curl_header *header = NULL;

    while ((header = curl_easy_nextheader(transfer->easy, CURLH_HEADER, -1, header)) != NULL)
        *dv_vec_add_in(&fields, transfer->arena) = (struct dv_rest_field){
            dv_str_copy(dv_str_from_c(header->name), transfer->arena),
            dv_str_copy(dv_str_from_c(header->value), transfer->arena),
        };
    fetch->answer_fields = fields.v;
    fetch->n_answer_fields = fields.n;
}

static void take_status(struct dv_rest_transfer *transfer)
{
    long status = 0;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status); /* 0: none yet */
    transfer->fetch->status = (unsigned)status;
}

static void detach(struct dv_rest_transfer *transfer)
{
    struct dv_rest_client *client = transfer->client;

    if (!transfer->easy)
        return;
    (void)curl_multi_remove_handle(client->multi, transfer->easy); /* cannot fail: libcurl has it */
    curl_easy_cleanup(transfer->easy);
    transfer->easy = NULL;
    client->n_attached--;
}

void dv_rest_transfer_finish(struct dv_rest_transfer *transfer)
{
    struct dv_rest_fetch *fetch = transfer->fetch;
    const struct dv_err *err = transfer->err.code == DV_OK ? NULL : &transfer->err;

    dv_task_cancel(&transfer->resuming);
    detach(transfer);
    dv_log(DV_LOG_DEBUG, "rest: fetch ended", DV_F_REQUEST(transfer->id),
           DV_F_U64("status", fetch->status), DV_F_U64("bytes", transfer->body.n),
           DV_F_C("error", err ? err->msg : ""),
           DV_F_U64("us", (dv_loop_now_ns(transfer->client->loop) - transfer->start_ns) / 1000));
    if (!err)
        fetch->answer = dv_buf_str(&transfer->body);
    fetch->priv = NULL;
    fetch->done(fetch, err); /* comes last, because it may free the fetch */
    curl_slist_free_all(transfer->fields);
    curl_slist_free_all(transfer->connect_to);
    dv_buf_fini(&transfer->body);
    dv_arena_free(transfer->arena);
    free(transfer);
}

/* ---- what libcurl says ---- */

static const struct {
    CURLcode from;
    enum dv_code code;
    const char *text; /* NULL: libcurl's own text is good */
} results[] = {
    {CURLE_OPERATION_TIMEDOUT,       DV_DEADLINE_EXCEEDED,  NULL                                           },
    {CURLE_UNSUPPORTED_PROTOCOL,     DV_INTERNAL,           "the answer is not HTTP"                       },
    {CURLE_BAD_CONTENT_ENCODING,     DV_INTERNAL,           NULL                                           },
    {CURLE_URL_MALFORMAT,            DV_INVALID_ARGUMENT,   NULL                                           },
    {CURLE_GOT_NOTHING,              DV_UNAVAILABLE,        "the server closed without an answer"          },
    {CURLE_PARTIAL_FILE,             DV_UNAVAILABLE,        "the server closed in the middle of the answer"},
    {CURLE_PEER_FAILED_VERIFICATION, DV_UNAUTHENTICATED,    NULL                                           },
    {CURLE_SSL_PINNEDPUBKEYNOTMATCH, DV_UNAUTHENTICATED,
     "the server has another key than it should"                                                           },
    {CURLE_SSL_CERTPROBLEM,          DV_INVALID_ARGUMENT,   NULL                                           },
    {CURLE_SSL_CACERT_BADFILE,       DV_INVALID_ARGUMENT,   NULL                                           },
    {CURLE_OUT_OF_MEMORY,            DV_RESOURCE_EXHAUSTED, "a line of the answer\'s header is too long"   },
#if LIBCURL_VERSION_NUM >= 0x080600  /* says so of a line, and of more than 5,000 of them */
    {CURLE_TOO_LARGE,                DV_RESOURCE_EXHAUSTED, "the answer\'s header is too long"             },
#endif
};

/* Sets the error to what GnuTLS found wrong with the server's certificate. */
static bool explain_flaws(CURL *easy, struct dv_err *err)
{
    gnutls_datum_t text = {0};
    long flaws = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &flaws); /* 0: none */
    if (flaws == 0 || gnutls_certificate_verification_status_print((unsigned)flaws, GNUTLS_CRT_X509,
                                                                   &text, 0) != 0)
        return false;
    (void)dv_fail(err, DV_UNAUTHENTICATED, "the server's certificate: %s", (char *)text.data);
    gnutls_free(text.data);
    return true;
}

int dv_rest_explain(CURL *easy, CURLcode result, const char *said, struct dv_err *err)
{
    long errnum = 0;

    said = said[0] ? said : curl_easy_strerror(result);
    (void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &errnum); /* 0: unknown */
    /* Libcurl tells how long it took, which would be another text each time. */
    if (result == CURLE_COULDNT_CONNECT && errnum != 0) {
        (void)dv_fail(err, DV_UNAVAILABLE, "Failed to connect: %s", strerrordesc_np((int)errnum));
        return (int)errnum;
    }
    if (result == CURLE_PEER_FAILED_VERIFICATION && explain_flaws(easy, err))
        return 0;
    /* Libcurl says so of a bad status line since 8.0 only. */
    if (result == CURLE_WEIRD_SERVER_REPLY) {
        (void)dv_fail(err, DV_INTERNAL, "the answer is not HTTP: %s", said);
        return 0;
    }
    for (size_t i = 0; i < DV_COUNT(results); i++) {
        if (results[i].from != result)
            continue;
        (void)dv_fail(err, results[i].code, "%s", results[i].text ? results[i].text : said);
        return 0;
    }
    /* All other results are about the network: looking up, connecting, shaking hands, sending,
     * receiving. */
    (void)dv_fail(err, DV_UNAVAILABLE, "%s", said);
    return 0;
}

static void on_result(struct dv_rest_attached *attached, CURLcode result)
{
    struct dv_rest_transfer *transfer = DV_CONTAINER(attached, struct dv_rest_transfer, attached);
    struct dv_err err;

    if (transfer->is_ended)
        return;
    take_status(transfer);
    take_fields(transfer);
    if (result == CURLE_OK && transfer->has_header) {
        (void)dv_succeed(&err);
        end_with(transfer, &err);
        return;
    }
    transfer->fetch->connect_errno = dv_rest_explain(
        transfer->easy, result == CURLE_OK ? CURLE_PARTIAL_FILE : result, transfer->said, &err);
    name_fetch(transfer, &err);
    end_with(transfer, &err);
}

/* ---- time ---- */

static void on_time(struct dv_timer *timer);

static uint64_t due_ms(const struct dv_rest_transfer *transfer)
{
    const struct dv_rest_fetch *fetch = transfer->fetch;
    uint64_t at_ms = fetch->deadline_ms > 0 ? fetch->deadline_ms : NEVER;

    return dv_u64_min(at_ms, dv_u64_min(transfer->connect_at_ms, transfer->idle_at_ms));
}

static void arm(struct dv_rest_transfer *transfer)
{
    uint64_t at_ms = due_ms(transfer);

    if (at_ms != NEVER)
        dv_timer_start(&transfer->timer, transfer->client->loop, at_ms, on_time);
    else
        dv_timer_cancel(&transfer->timer);
}

static void expect_bytes(struct dv_rest_transfer *transfer)
{
    const struct dv_rest_fetch *fetch = transfer->fetch;

    if (fetch->idle_ms == 0)
        return;
    transfer->idle_at_ms =
        dv_u64_add_clamped(dv_loop_now_ms(transfer->client->loop), fetch->idle_ms);
    arm(transfer);
}

static void on_time(struct dv_timer *timer)
{
    struct dv_rest_transfer *transfer = DV_CONTAINER(timer, struct dv_rest_transfer, timer);
    const struct dv_rest_fetch *fetch = transfer->fetch;
    /* The limit that was due first counts, also when the loop is late. */
    uint64_t at_ms = due_ms(transfer);

    if (at_ms == fetch->deadline_ms)
        dv_rest_transfer_end(transfer, DV_DEADLINE_EXCEEDED, "%s",
                             !transfer->easy ? "no connection was free before the deadline"
                             : !transfer->is_connected ? "not connected before the deadline"
                                                       : "no complete answer before the deadline");
    else if (at_ms == transfer->connect_at_ms)
        dv_rest_transfer_end(transfer, DV_UNAVAILABLE, "not connected in %llu ms",
                             (unsigned long long)transfer->client->connect_timeout_ms);
    else
        dv_rest_transfer_end(transfer, DV_DEADLINE_EXCEEDED, "nothing has come for %llu ms",
                             (unsigned long long)fetch->idle_ms);
}

/* ---- what libcurl calls ---- */

static int on_connected(void *ctx, char *ip, char *own_ip, int port, int own_port)
{
    struct dv_rest_transfer *transfer = ctx;

    (void)ip;
    (void)own_ip;
    (void)port;
    (void)own_port;
    if (transfer->is_ended)
        return CURL_PREREQFUNC_ABORT;
    transfer->is_connected = true;
    transfer->connect_at_ms = NEVER;
    arm(transfer);
    expect_bytes(transfer);
    return CURL_PREREQFUNC_OK;
}

/* Notes whether the header is complete, because libcurl takes one that is cut off for a complete
 * one. */
static void note_line(struct dv_rest_transfer *transfer, dv_str line)
{
    if (dv_str_starts_with(line, DV_STR("HTTP/")))
        transfer->has_header = false; /* the real header follows "100 Continue" */
    else if (dv_str_trim(line).n == 0)
        transfer->has_header = true;
}

/* False: the fetch has been ended meanwhile. */
static bool tell_head(struct dv_rest_transfer *transfer)
{
    struct dv_rest_fetch *fetch = transfer->fetch;

    take_status(transfer);
    if (fetch->on_head && fetch->status / 100 == 2 && !transfer->has_told_head) {
        transfer->has_told_head = true; /* fields may follow the body too */
        fetch->on_head(fetch);
    }
    return !transfer->is_ended;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct dv_rest_transfer *transfer = ctx;

    n *= size;
    if (transfer->is_ended)
        return 0; /* makes libcurl break off */
    note_line(transfer, (dv_str){bytes, n});
    if (transfer->has_header && !tell_head(transfer))
        return 0;
    transfer->header_bytes += n;
    if (transfer->header_bytes > HEADER_BYTES_MAX) {
        dv_rest_transfer_end(transfer, DV_RESOURCE_EXHAUSTED,
                             "the answer's header is larger than %u bytes", HEADER_BYTES_MAX);
        return 0;
    }
    expect_bytes(transfer);
    return n;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    struct dv_rest_transfer *transfer = ctx;
    struct dv_rest_fetch *fetch = transfer->fetch;

    n *= size;
    if (transfer->is_ended)
        return 0;
    if (transfer->is_paused) { /* libcurl keeps the bytes, and stops reading */
        transfer->is_held = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    expect_bytes(transfer);
    if (fetch->status == 0)
        take_status(transfer);
    if (fetch->on_body && fetch->status / 100 == 2) {
        fetch->on_body(fetch, (dv_str){bytes, n}); /* it may cancel the fetch */
        return transfer->is_ended ? 0 : n;
    }
    dv_buf_add(&transfer->body, (dv_str){bytes, n});
    if (!transfer->body.is_over)
        return n;
    dv_rest_transfer_end(transfer, DV_RESOURCE_EXHAUSTED, "the answer is larger than %zu bytes",
                         transfer->body.max);
    return 0;
}

/* ---- the beginning ---- */

void dv_rest_transfer_begin(struct dv_rest_transfer *transfer)
{
    struct dv_rest_client *client = transfer->client;
    const struct dv_rest_fetch *fetch = transfer->fetch;
    const struct dv_rest_request request = {.method = fetch->method,
                                            .path = fetch->target,
                                            .fields = fetch->fields,
                                            .n_fields = fetch->n_fields,
                                            .body = fetch->body};
    struct dv_err err;

    if (!dv_rest_request_check(client, &request, &err)) {
        dv_rest_transfer_end(transfer, err.code, "%s", err.msg);
        return;
    }
    transfer->easy = curl_easy_init();
    if (!transfer->easy)
        abort(); /* out of memory */
    client->n_attached++;
    transfer->connect_at_ms =
        dv_u64_add_clamped(dv_loop_now_ms(client->loop), client->connect_timeout_ms);
    arm(transfer);
    dv_rest_transfer_set_up(transfer);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_ERRORBUFFER, transfer->said);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_PREREQFUNCTION, on_connected);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_PREREQDATA, transfer);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_HEADERDATA, transfer);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
    transfer->attached.done = on_result;
    if (curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, &transfer->attached) != CURLE_OK ||
        curl_multi_add_handle(client->multi, transfer->easy) != CURLM_OK)
        abort(); /* out of memory: all else has been checked */
}

void dv_rest_fetch_start(struct dv_rest_client *client, struct dv_rest_fetch *fetch)
{
    struct dv_rest_transfer *transfer = DV_ALLOC(struct dv_rest_transfer);

    assert(!client->is_closing && !fetch->priv);
    assert(fetch->deadline_ms > 0 || fetch->idle_ms > 0);
    fetch->priv = transfer;
    fetch->status = 0;
    fetch->connect_errno = 0;
    fetch->answer = DV_STR("");
    fetch->answer_fields = NULL;
    fetch->n_answer_fields = 0;
    transfer->client = client;
    transfer->fetch = fetch;
    transfer->arena = dv_arena_new();
    transfer->id = dv_rest_next_id();
    transfer->start_ns = dv_loop_now_ns(client->loop);
    transfer->connect_at_ms = transfer->idle_at_ms = NEVER;
    dv_buf_init(&transfer->body,
                fetch->body_bytes_max > 0 ? fetch->body_bytes_max : BODY_BYTES_DEFAULT);
    dv_log(DV_LOG_DEBUG, "rest: fetch started", DV_F_REQUEST(transfer->id),
           DV_F_STR("method", fetch->method), DV_F_C("base", client->base_url),
           DV_F_STR("target", fetch->target));
    dv_list_push(&client->waiting, &transfer->link);
    expect_bytes(transfer);
    arm(transfer);
    dv_rest_client_work_later(client);
}

void dv_rest_fetch_cancel(struct dv_rest_fetch *fetch)
{
    if (fetch->priv)
        dv_rest_transfer_end(fetch->priv, DV_CANCELLED, "cancelled");
}

/* Libcurl hands out at once what it has kept: not from within the caller's own function. */
static void on_resuming(struct dv_task *task)
{
    struct dv_rest_transfer *transfer = DV_CONTAINER(task, struct dv_rest_transfer, resuming);

    if (transfer->is_ended || transfer->is_paused || !transfer->is_held)
        return;
    transfer->is_held = false;
    expect_bytes(transfer);
    (void)curl_easy_pause(transfer->easy, CURLPAUSE_CONT); /* fails only when the fetch is ended */
}

void dv_rest_fetch_pause(struct dv_rest_fetch *fetch, bool is_paused)
{
    struct dv_rest_transfer *transfer = fetch->priv;

    if (!transfer || transfer->is_paused == is_paused)
        return;
    assert(fetch->on_body);
    transfer->is_paused = is_paused;
    if (!is_paused)
        dv_task_post(&transfer->resuming, transfer->client->loop, on_resuming);
}

dv_str dv_rest_fetch_field(const struct dv_rest_fetch *fetch, dv_str name)
{
    for (size_t i = 0; i < fetch->n_answer_fields; i++)
        if (dv_str_eq_nocase(fetch->answer_fields[i].name, name))
            return fetch->answer_fields[i].value;
    return DV_STR("");
}
