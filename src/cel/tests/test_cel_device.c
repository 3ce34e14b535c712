#include "cel/tests/test_cel_device.h"

#include "base/arena.h"
#include "cel/cel.h"

struct dv_cel_device *dv_cel_test_device(bool has_lists, struct dv_arena *arena)
{
    static const int64_t nums[] = {3, 1, 2};
    static const dv_str names[] = {DV_STR_INIT("red"), DV_STR_INIT("green")};
    struct dv_cel_attribute *a = DV_NEW_ARRAY(arena, struct dv_cel_attribute, 7);
    struct dv_cel_capacity *capacity = DV_NEW(arena, struct dv_cel_capacity);
    struct dv_cel_device_input input = {.driver = DV_STR("dra.example.com"),
                                        .attributes = a,
                                        .n_attributes = has_lists ? 7 : 5,
                                        .capacities = capacity,
                                        .n_capacities = 1,
                                        .list_type_attributes = has_lists};

    a[0] = (struct dv_cel_attribute){
        .name = DV_STR("name"), .kind = DV_CEL_ATTRIBUTE_STRING, .s = DV_STR("fish")};
    a[1] = (struct dv_cel_attribute){
        .name = DV_STR("dra.example.com/cores"), .kind = DV_CEL_ATTRIBUTE_INT, .i = 8};
    a[2] =
        (struct dv_cel_attribute){.name = DV_STR("ok"), .kind = DV_CEL_ATTRIBUTE_BOOL, .b = true};
    a[3] = (struct dv_cel_attribute){
        .name = DV_STR("ver"), .kind = DV_CEL_ATTRIBUTE_VERSION, .s = DV_STR("1.2.3")};
    a[4] = (struct dv_cel_attribute){.name = DV_STR("other.example.com/name"),
                                     .kind = DV_CEL_ATTRIBUTE_STRING,
                                     .s = DV_STR("bird")};
    a[5] = (struct dv_cel_attribute){
        .name = DV_STR("nums"), .kind = DV_CEL_ATTRIBUTE_INTS, .ints = nums, .n = 3};
    a[6] = (struct dv_cel_attribute){
        .name = DV_STR("names"), .kind = DV_CEL_ATTRIBUTE_STRINGS, .strings = names, .n = 2};
    capacity->name = DV_STR("memory");
    capacity->value = dv_quantity_from_i64(16LL << 30, DV_QUANTITY_BINARY_SI);
    return dv_cel_device_new(&input, arena);
}
