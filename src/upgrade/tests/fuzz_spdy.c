/* A SPDY session of either side, whatever its peer sends and its handler does: it is told the same
 * however the bytes are cut, each stream ends once, and what it says another session understands.
 *
 *     1 byte   bit 0: we are the client; bit 2: the rest is in records
 *     1 byte   how long the script is
 *     script   what our side does
 *     rest     what the peer sends; a record is one frame, made well-formed: type, stream or flags,
 *              length n, n bytes, of which header blocks are packed */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy/spdy_header.h"

#define INPUT_BYTES_MAX 65536u
#define LOG_BYTES_MAX (16u << 20)
#define STREAMS_MAX 20u
#define SENDS_MAX 200u
#define FRAME_HEAD_BYTES 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct dv_spdy_stream *stream; /* NULL: it has ended */
    size_t n_asked;
    bool is_finished;
};

struct run {
    struct dv_spdy_handler handler;
    struct dv_spdy *spdy;
    dv_str script;
    struct dv_buf log;
    struct dv_buf output;
    DV_VEC(struct seen) streams;
    size_t n_sends;
    bool is_deaf;
};

static struct run *run_of(struct dv_spdy_handler *handler)
{
    return DV_CONTAINER(handler, struct run, handler);
}

static struct seen *look_up(struct run *run, const struct dv_spdy_stream *stream)
{
    size_t number = (size_t)(uintptr_t)dv_spdy_stream_ctx(stream);

    assert(number < run->streams.n && run->streams.v[number].stream == stream);
    return &run->streams.v[number];
}

static void add_stream(struct run *run, struct dv_spdy_stream *stream)
{
    dv_spdy_stream_set_ctx(stream, (void *)(uintptr_t)run->streams.n); /* a number is enough */
    dv_vec_add(&run->streams)->stream = stream;
}

/* Depends only on what the stream has been through, so that both runs do the same. */
static uint8_t ask(struct run *run, struct dv_spdy_stream *stream, size_t place)
{
    struct seen *seen = look_up(run, stream);
    size_t number = (size_t)(seen - run->streams.v);

    if (run->script.n == 0)
        return 0;
    return (uint8_t)run->script.p[(number * 5 + place * 11 + seen->n_asked++) % run->script.n];
}

static void open_one(struct run *run)
{
    static const struct dv_spdy_field fields[] = {
        {DV_STR_INIT("streamtype"), DV_STR_INIT("data")},
        {DV_STR_INIT("port"),       DV_STR_INIT("80")  },
    };
    struct dv_err err;
    struct dv_spdy_stream *stream = NULL;

    if (run->streams.n < 2 * STREAMS_MAX)
        stream = dv_spdy_open(run->spdy, fields, DV_COUNT(fields), NULL, &err);
    if (stream)
        add_stream(run, stream);
}

static void act(struct run *run, struct dv_spdy_stream *stream, uint8_t how)
{
    static const char zeros[70000];

    switch (how % 8) {
    case 1:
        dv_spdy_reply(stream);
        break;
    case 2:
        if (run->n_sends++ < SENDS_MAX)
            (void)dv_spdy_send(stream, (dv_str){zeros, how > 200 ? 70000 : how});
        break;
    case 3:
        dv_spdy_finish(stream);
        break;
    case 4:
        dv_spdy_reset(stream, DV_SPDY_CANCEL);
        break;
    case 6:
        open_one(run);
        break;
    case 7:
        if (how > 240)
            dv_spdy_go_away(run->spdy);
        else
            dv_spdy_ping(run->spdy);
        break;
    default:
        break;
    }
}

static void note(struct run *run, const struct dv_spdy_stream *stream, const char *what, size_t n)
{
    assert(!run->is_deaf);
    dv_buf_printf(&run->log, "%u %s %zu\n", stream ? dv_spdy_stream_id(stream) : 0, what, n);
}

static void on_opened(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                      const struct dv_spdy_field *fields, size_t n_fields)
{
    struct run *run = run_of(handler);

    assert(n_fields <= DV_SPDY_FIELDS_MAX);
    add_stream(run, stream);
    note(run, stream, "opened", n_fields);
    for (size_t i = 0; i < n_fields; i++) {
        assert(fields[i].name.n > 0);
        dv_buf_printf(&run->log, "%016llx %016llx\n", (unsigned long long)dv_hash(fields[i].name),
                      (unsigned long long)dv_hash(fields[i].value));
    }
    act(run, stream, ask(run, stream, 0));
}

static void on_replied(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct run *run = run_of(handler);

    note(run, stream, "replied", 0);
    act(run, stream, ask(run, stream, 1));
}

static void on_data(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes)
{
    struct run *run = run_of(handler);

    assert(!run->is_deaf && bytes.n > 0 && !look_up(run, stream)->is_finished);
}

static void on_finished(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct run *run = run_of(handler);
    struct seen *seen = look_up(run, stream);

    assert(!seen->is_finished);
    seen->is_finished = true;
    note(run, stream, "finished", 0);
    act(run, stream, ask(run, stream, 2));
}

static void on_room(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct run *run = run_of(handler);

    act(run, stream, ask(run, stream, 3));
}

static void on_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                     const struct dv_err *err)
{
    struct run *run = run_of(handler);
    struct seen *seen = look_up(run, stream);

    if (!run->is_deaf)
        note(run, stream, "ended", err ? err->code : 0);
    act(run, stream, 2); /* takes no orders any more */
    act(run, stream, 3);
    act(run, stream, 4);
    seen->stream = NULL;
}

static void on_event(struct dv_spdy_handler *handler)
{
    note(run_of(handler), NULL, "event", 0);
}

static void run_init(struct run *run, const struct dv_spdy_options *options, dv_str script)
{
    *run = (struct run){
        .handler = {.opened = on_opened,
                    .replied = on_replied,
                    .data = on_data,
                    .finished = on_finished,
                    .room = on_room,
                    .ended = on_ended,
                    .going_away = on_event,
                    .pong = on_event},
        .script = script,
    };
    dv_buf_init(&run->log, LOG_BYTES_MAX);
    dv_buf_init(&run->output, LOG_BYTES_MAX);
    run->spdy = dv_spdy_new(options, &run->handler);
    if (script.n > 0)
        for (uint8_t i = 0; i < script.p[0] % 4; i++)
            open_one(run);
}

static void pull(struct run *run)
{
    dv_str bytes;

    for (int i = 0; i < 4 && dv_spdy_pull(run->spdy, &bytes); i++) {
        assert(bytes.n > 0);
        dv_buf_add(&run->output, bytes);
    }
}

static bool feed(struct run *run, dv_str bytes, size_t step)
{
    struct dv_err err = {0};
    bool is_fine = true;

    while (bytes.n > 0) {
        is_fine = dv_spdy_receive(run->spdy, dv_str_slice(bytes, 0, step), &err);
        assert(is_fine == (err.code == DV_OK));
        run->is_deaf |= !is_fine;
        bytes = dv_str_slice(bytes, step, bytes.n);
        assert(dv_spdy_unsent_bytes(run->spdy) < (1u << 20));
    }
    return is_fine;
}

/* Whole frames, whose header blocks can be unpacked. */
static void check_output(dv_str bytes)
{
    struct dv_spdy_headers headers;
    struct dv_err err;

    dv_spdy_headers_init(&headers, 65536);
    while (bytes.n > 0) {
        size_t n;
        uint8_t type;

        assert(bytes.n >= FRAME_HEAD_BYTES);
        n = (size_t)(uint8_t)bytes.p[5] << 16 | (size_t)(uint8_t)bytes.p[6] << 8 |
            (uint8_t)bytes.p[7];
        type = bytes.p[0] & 0x80 ? (uint8_t)bytes.p[3] : 0;
        assert(n <= bytes.n - FRAME_HEAD_BYTES);
        if (type == 1 || type == 2) {
            size_t at = FRAME_HEAD_BYTES + (type == 1 ? 10 : 4);

            dv_spdy_headers_begin(&headers);
            assert(
                dv_spdy_headers_add(&headers, dv_str_slice(bytes, at, FRAME_HEAD_BYTES + n), &err));
            assert(dv_spdy_headers_end(&headers, &err));
        }
        bytes = dv_str_slice(bytes, FRAME_HEAD_BYTES + n, bytes.n);
    }
    dv_spdy_headers_fini(&headers);
}

static void run_end(struct run *run)
{
    struct dv_err gone;

    pull(run);
    check_output(dv_buf_str(&run->output));
    run->is_deaf = true;
    (void)dv_fail(&gone, DV_UNAVAILABLE, "the end");
    dv_spdy_lose(run->spdy, &gone);
    assert(dv_spdy_n_streams(run->spdy) == 0);
    for (size_t i = 0; i < run->streams.n; i++)
        assert(!run->streams.v[i].stream);
    dv_spdy_free(run->spdy);
    dv_buf_fini(&run->log);
    dv_buf_fini(&run->output);
    dv_vec_fini(&run->streams);
}

/* ---- records ---- */

static void add_u32(struct dv_buf *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        dv_buf_add_char(out, (char)(value >> shift));
}

/* The bytes choose among fields. */
static void add_block(struct dv_spdy_headers *packer, dv_str body, struct dv_buf *out)
{
    static const struct dv_spdy_field known[] = {
        {DV_STR_INIT("streamtype"), DV_STR_INIT("error")},
        {DV_STR_INIT("streamtype"), DV_STR_INIT("data") },
        {DV_STR_INIT("port"),       DV_STR_INIT("80")   },
        {DV_STR_INIT("requestid"),  DV_STR_INIT("0")    },
        {DV_STR_INIT("Upper"),      DV_STR_INIT("")     },
        {DV_STR_INIT(""),           DV_STR_INIT("x")    },
        {DV_STR_INIT("a"),          DV_STR_INIT("b\0c") },
    };
    struct dv_spdy_field fields[16];
    size_t n = dv_size_min(body.n, DV_COUNT(fields));

    for (size_t i = 0; i < n; i++)
        fields[i] = known[(uint8_t)body.p[i] % DV_COUNT(known)];
    dv_spdy_headers_print(packer, fields, n, out);
}

static void add_record(struct dv_spdy_headers *packer, uint8_t type, uint8_t id, dv_str body,
                       struct dv_buf *bytes)
{
    struct dv_buf payload;

    dv_buf_init(&payload, INPUT_BYTES_MAX);
    if (type % 10 > 0)
        add_u32(&payload, id & 0x7f);
    if (type % 10 == 1) {
        add_u32(&payload, 0);
        dv_buf_add(&payload, DV_STR("\0\0"));
    }
    if (type % 10 == 1 || type % 10 == 2 || type % 10 == 8)
        add_block(packer, body, &payload);
    else
        dv_buf_add(&payload, body);
    add_u32(bytes, type % 10 > 0 ? 0x80030000u | type % 10 : id & 0x7fu);
    add_u32(bytes, (uint32_t)(type / 10 % 4) << 24 | (uint32_t)payload.n);
    dv_buf_add(bytes, dv_buf_str(&payload));
    dv_buf_fini(&payload);
}

static void add_records(dv_str records, struct dv_buf *bytes)
{
    struct dv_spdy_headers packer;

    dv_spdy_headers_init(&packer, INPUT_BYTES_MAX);
    while (records.n >= 3) {
        size_t n = dv_size_min((uint8_t)records.p[2], records.n - 3);

        add_record(&packer, (uint8_t)records.p[0], (uint8_t)records.p[1],
                   dv_str_slice(records, 3, 3 + n), bytes);
        records = dv_str_slice(records, 3 + n, records.n);
    }
    dv_spdy_headers_fini(&packer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dv_spdy_options options = {
        .streams_max = STREAMS_MAX, .header_bytes_max = 2048, .unsent_bytes_max = 100000};
    struct run runs[2];
    struct dv_buf frames;
    dv_str script;
    dv_str bytes;
    bool is_fine;

    if (size < 2 || size > INPUT_BYTES_MAX)
        return 0;
    options.is_client = data[0] & 1;
    script = dv_str_slice((dv_str){(const char *)data, size}, 2, 2 + (size_t)data[1]);
    bytes = dv_str_slice((dv_str){(const char *)data, size}, 2 + script.n, size);
    dv_buf_init(&frames, 64 * INPUT_BYTES_MAX);
    if (data[0] & 4) {
        add_records(bytes, &frames);
        bytes = dv_buf_str(&frames);
    }
    run_init(&runs[0], &options, script);
    run_init(&runs[1], &options, script);
    is_fine = feed(&runs[0], bytes, SIZE_MAX);
    assert(feed(&runs[1], bytes, 1 + data[0] / 8) == is_fine);
    /* Streams end when all bytes at hand have been heard: only the order of that may differ. */
    assert(runs[0].log.n == runs[1].log.n);
    for (int i = 0; i < 2; i++)
        run_end(&runs[i]);
    dv_buf_fini(&frames);
    return 0;
}
