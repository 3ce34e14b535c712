#include "store/tests/test_store_crash.h"

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "store/tests/test_store_fixture.h"

static void write_next(struct crash_client *client);

static void on_done(struct dv_store_write *write, const struct dv_err *err)
{
    struct crash_client *client = DV_CONTAINER(write, struct crash_client, write);
    struct crash_load *load = client->load;

    assert_null(err);
    load->acknowledged(client->number);
    load->n_busy--;
    if (load->next <= load->last)
        write_next(client);
}

static void write_next(struct crash_client *client)
{
    struct crash_load *load = client->load;
    char key[16];
    char other[16];
    char *value = dv_alloc(load->value_bytes);
    struct dv_store_change changes[4];
    dv_str key_s;

    client->number = load->next++;
    key_s = (dv_str){key, (size_t)snprintf(key, sizeof(key), "k%02u",
                                           (unsigned)(client->number % CRASH_N_KEYS))};
    changes[0] = changes[1] = (struct dv_store_change){
        DV_STORE_PUT, PODS, key_s, make_value(client->number, load->value_bytes, value)};
    changes[1].table = CLAIMS;
    changes[2] = (struct dv_store_change){
        DV_STORE_DELETE,
        CLAIMS,
        {other, (size_t)snprintf(other, sizeof(other), "k%02u",
          (unsigned)((client->number + CRASH_N_KEYS / 2) % CRASH_N_KEYS))},
        DV_STR_NONE
    };
    changes[3] =
        (struct dv_store_change){DV_STORE_PUT, PODS, DV_STR_INIT("last"), changes[0].value};
    load->n_busy++;
    dv_store_write(load->store, &client->write, changes, DV_COUNT(changes));
    free(value);
}

void crash_start(struct crash_load *load)
{
    load->n_busy = 0;
    for (size_t i = 0; i < CRASH_N_CLIENTS && load->next <= load->last; i++) {
        load->clients[i] = (struct crash_client){.write = {.done = on_done}, .load = load};
        write_next(&load->clients[i]);
    }
}

/* The largest number up to `last` that wrote key i; 0: none. */
static uint64_t writer_of(uint64_t last, uint64_t key)
{
    uint64_t back = (last + CRASH_N_KEYS - key) % CRASH_N_KEYS;

    return last > back ? last - back : 0;
}

static void expect_row(struct dv_buf *text, const char *key, uint64_t number, size_t value_bytes)
{
    char *value = dv_alloc(value_bytes);

    dv_buf_printf(text, "%s=", key);
    dv_buf_add(text, make_value(number, value_bytes, value));
    dv_buf_add_char(text, ' ');
    free(value);
}

static void expect_rows(struct dv_buf *text, bool is_claims, uint64_t last, size_t value_bytes)
{
    char key[16];

    for (uint64_t i = 0; i < CRASH_N_KEYS; i++) {
        uint64_t number = writer_of(last, i);

        if (number == 0 || (is_claims && number + CRASH_N_KEYS / 2 <= last))
            continue; /* never written, or deleted since */
        (void)snprintf(key, sizeof(key), "k%02u", (unsigned)i);
        expect_row(text, key, number, value_bytes);
    }
    if (last > 0 && !is_claims)
        expect_row(text, "last", last, value_bytes);
}

static uint64_t last_of(struct fixture *fixture)
{
    dv_str rows = dv_buf_str(&fixture->text);
    size_t at = dv_str_find(rows, DV_STR("last="));
    uint64_t last = 0;

    rows = dv_str_slice(rows, at + 5, rows.n);
    rows = dv_str_slice(rows, 0, dv_str_find_char(rows, ':'));
    if (rows.n > 0)
        assert_true(dv_str_to_u64(rows, &last));
    return last;
}

uint64_t crash_check(struct fixture *fixture, size_t value_bytes)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf expected;
    uint64_t last;

    dv_buf_init(&expected, 64u << 20);
    assert_null(dv_store_set_aside(fixture->store));
    assert_non_null(load_rows(fixture, PODS));
    last = last_of(fixture);
    expect_rows(&expected, false, last, value_bytes);
    assert_true(dv_str_eq(dv_buf_str(&fixture->text), dv_buf_str(&expected)));
    dv_buf_clear(&expected);
    expect_rows(&expected, true, last, value_bytes);
    assert_non_null(load_rows(fixture, CLAIMS));
    assert_true(dv_str_eq(dv_buf_str(&fixture->text), dv_buf_str(&expected)));
    return last;
}
