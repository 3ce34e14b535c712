#include "store/store_batch.h"

#include <assert.h>
#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define SUM_BYTES sizeof(uint64_t)

/* A batch that had to grow beyond this gives its memory back after use. */
#define KEPT_BYTES_MAX (64u * 1024u)
#define KEPT_RECORDS_MAX 1024u

/* Fletcher's sums over 32-bit words: they are cheap, and every flipped bit and every burst shorter
 * than a word changes them. */
struct sums {
    uint32_t a;
    uint32_t b;
};

static void add_word(struct sums *sums, uint32_t word)
{
    sums->a += le32toh(word);
    sums->b += sums->a;
}

static void add_bytes(struct sums *sums, dv_str s)
{
    size_t n_whole = s.n / sizeof(uint32_t) * sizeof(uint32_t);
    uint32_t word = 0;

    /* The size of these copies is a constant, so that each is one instruction. */
    for (size_t at = 0; at < n_whole; at += sizeof(word)) {
        memcpy(&word, s.p + at, sizeof(word));
        add_word(sums, word);
    }
    if (n_whole == s.n)
        return;
    word = 0;
    memcpy(&word, s.p + n_whole, s.n - n_whole);
    add_word(sums, word);
}

/* The checksum covers the lengths too, so that a row of zeros is not its own checksum. */
static uint64_t checksum(dv_str key, dv_str value)
{
    struct sums sums = {.a = (uint32_t)key.n + 1, .b = (uint32_t)value.n};

    add_bytes(&sums, key);
    add_bytes(&sums, value);
    return htole64((uint64_t)sums.b << 32 | sums.a);
}

struct dv_store_batch *dv_store_batch_new(void)
{
    struct dv_store_batch *batch = DV_ALLOC(struct dv_store_batch);

    dv_list_init(&batch->writes);
    dv_buf_init(&batch->bytes, SIZE_MAX / 2); /* the queue's bound keeps it small */
    return batch;
}

void dv_store_batch_free(struct dv_store_batch *batch)
{
    if (!batch)
        return;
    dv_link_remove(&batch->link);
    dv_vec_fini(&batch->records);
    dv_buf_fini(&batch->bytes);
    free(batch->set_aside);
    free(batch);
}

void dv_store_batch_clear(struct dv_store_batch *batch)
{
    assert(dv_list_is_empty(&batch->writes));
    if (batch->bytes.size > KEPT_BYTES_MAX)
        dv_buf_fini(&batch->bytes);
    if (batch->records.size > KEPT_RECORDS_MAX)
        dv_vec_fini(&batch->records);
    dv_buf_clear(&batch->bytes);
    dv_vec_clear(&batch->records);
    free(batch->set_aside);
    batch->set_aside = NULL;
    batch->n_writes = 0;
    batch->has_rebuilt = false;
    batch->has_failed = false;
}

void dv_store_batch_add(struct dv_store_batch *batch, const struct dv_store_change *change)
{
    struct dv_store_record *record = dv_vec_add(&batch->records);
    bool has_value = change->kind == DV_STORE_PUT;

    *record = (struct dv_store_record){
        .kind = change->kind,
        .table = change->table,
        .at = batch->bytes.n,
        .key_n = change->key.n,
        .value_n = has_value ? change->value.n : 0,
    };
    batch->has_rebuilt |= change->kind == DV_STORE_REBUILT;
    dv_buf_add(&batch->bytes, change->key);
    if (has_value) {
        dv_buf_add(&batch->bytes, change->value);
        (void)dv_buf_extend(&batch->bytes, SUM_BYTES); /* seal writes the checksum there */
    }
    assert(!batch->bytes.is_over);
}

dv_str dv_store_batch_key(const struct dv_store_batch *batch, const struct dv_store_record *record)
{
    return (dv_str){record->key_n ? batch->bytes.p + record->at : "", record->key_n};
}

dv_str dv_store_batch_seal(struct dv_store_batch *batch, const struct dv_store_record *record)
{
    char *value = batch->bytes.p + record->at + record->key_n;
    uint64_t sum = checksum(dv_store_batch_key(batch, record), (dv_str){value, record->value_n});

    memcpy(value + record->value_n, &sum, sizeof(sum));
    return (dv_str){value, record->value_n + sizeof(sum)};
}

bool dv_store_unseal(dv_str key, dv_str sealed, dv_str *value)
{
    dv_str bare;
    uint64_t sum;

    if (sealed.n < sizeof(sum))
        return false;
    bare = (dv_str){sealed.p, sealed.n - sizeof(sum)};
    memcpy(&sum, sealed.p + bare.n, sizeof(sum));
    if (sum != checksum(key, bare))
        return false;
    *value = bare;
    return true;
}
