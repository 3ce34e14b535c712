/* Remembered answers to reviews. */
#include "support/dvtest.h"

#include <string.h>

#include "resource/resource.h"
#include "serve/kubelet/review_cache.h"

static const struct dv_review_cache_limits limits = {
    .yes_ms = 100, .no_ms = 10, .yes_max = 2, .no_max = 3};
static const struct dv_api_user_info bob = {.username = DV_STR_INIT("bob")};

static struct dv_review_key key_of(unsigned char c)
{
    struct dv_review_key key;

    memset(key.bytes, c, sizeof(key.bytes));
    return key;
}

static enum dv_review_answer get(const struct dv_review_cache *cache, unsigned char c,
                                 uint64_t now_ms)
{
    const struct dv_api_user_info *user;
    struct dv_review_key key = key_of(c);
    enum dv_review_answer answer = dv_review_cache_get(cache, &key, now_ms, &user);

    if (answer == DV_ANSWER_YES)
        assert_str(user->username, "bob");
    return answer;
}

static void put(struct dv_review_cache *cache, unsigned char c, bool is_yes, uint64_t now_ms)
{
    struct dv_review_key key = key_of(c);

    dv_review_cache_put(cache, &key, is_yes, is_yes ? &bob : NULL, now_ms);
}

static void remembers_yes_longer_than_no(void **state)
{
    struct dv_review_cache cache;

    (void)state;
    dv_review_cache_init(&cache, &limits);
    assert_int_equal(get(&cache, 1, 0), DV_ANSWER_UNKNOWN);
    put(&cache, 1, true, 1000);
    put(&cache, 2, false, 1000);
    assert_int_equal(get(&cache, 1, 1009), DV_ANSWER_YES);
    assert_int_equal(get(&cache, 2, 1009), DV_ANSWER_NO);
    assert_int_equal(get(&cache, 2, 1010), DV_ANSWER_UNKNOWN);
    assert_int_equal(get(&cache, 1, 1099), DV_ANSWER_YES);
    assert_int_equal(get(&cache, 1, 1100), DV_ANSWER_WAS_YES);
    put(&cache, 1, false, 1100); /* the token was revoked meanwhile */
    assert_int_equal(get(&cache, 1, 1100), DV_ANSWER_NO);
    put(&cache, 1, true, 1101);
    assert_int_equal(get(&cache, 1, 1200), DV_ANSWER_YES);
    dv_review_cache_fini(&cache);
}

static void many_refusals_push_nobody_out(void **state)
{
    struct dv_review_cache cache;

    (void)state;
    dv_review_cache_init(&cache, &limits);
    put(&cache, 1, true, 0);
    for (unsigned i = 10; i < 100; i++)
        put(&cache, (unsigned char)i, false, 0);
    assert_int_equal(get(&cache, 1, 5), DV_ANSWER_YES);
    assert_int_equal(get(&cache, 96, 5), DV_ANSWER_UNKNOWN);
    assert_int_equal(get(&cache, 97, 5), DV_ANSWER_NO);
    assert_int_equal(cache.counts[false], 3);
    put(&cache, 2, true, 0);
    put(&cache, 3, true, 0); /* the oldest is forgotten */
    assert_int_equal(get(&cache, 1, 5), DV_ANSWER_UNKNOWN);
    assert_int_equal(get(&cache, 3, 5), DV_ANSWER_YES);
    assert_int_equal(cache.counts[true], 2);
    dv_review_cache_fini(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remembers_yes_longer_than_no),
        cmocka_unit_test(many_refusals_push_nobody_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
