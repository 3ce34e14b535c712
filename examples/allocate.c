/* allocate.c - two claims, one after the other, on a node with two GPUs; and why a third gets none.
 *
 *     cc allocate.c $(pkg-config --cflags --libs davit) */
#include <davit/alloc.h>
#include <davit/cel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char cluster[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["
    "{\"apiVersion\":\"resource.k8s.io/"
    "v1\",\"kind\":\"DeviceClass\",\"metadata\":{\"name\":\"gpu\"},"
    " \"spec\":{\"selectors\":[{\"cel\":{\"expression\":\"device.driver == "
    "'gpu.example.com'\"}}]}},"
    "{\"apiVersion\":\"resource.k8s.io/"
    "v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"s\"},"
    " \"spec\":{\"driver\":\"gpu.example.com\",\"nodeName\":\"node-1\",\"pool\":{\"name\":\"node-"
    "1\","
    "  \"generation\":1,\"resourceSliceCount\":1},\"devices\":["
    "   {\"name\":\"gpu-0\",\"capacity\":{\"memory\":{\"value\":\"40Gi\"}}},"
    "   {\"name\":\"gpu-1\",\"capacity\":{\"memory\":{\"value\":\"80Gi\"}}}]}}]}";

static const char node[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-1\"}}";

/* A claim for one GPU; what it has so far goes into its status. */
static const char *claim(char *text, size_t size, int number, const char *selectors,
                         const char *status)
{
    (void)snprintf(text, size,
                   "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\","
                   "\"metadata\":{\"namespace\":\"default\",\"name\":\"claim-%d\"},"
                   "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{"
                   "\"deviceClassName\":\"gpu\",\"selectors\":[%s]}}]}},\"status\":{%s}}",
                   number, selectors, status);
    return text;
}

static void must(bool is_ok, const struct davit_error *error)
{
    if (is_ok)
        return;
    (void)fprintf(stderr, "allocate: %s\n", error->message);
    exit(1);
}

/* Allocates a claim and holds what it got. */
static void allocate(struct davit_inventory *inventory, int number, const char *selectors)
{
    char text[4096];
    char status[2048];
    const char *claims[] = {claim(text, sizeof(text), number, selectors, "")};
    struct davit_error error;
    char *allocations;
    enum davit_outcome outcome =
        davit_allocate(inventory, node, claims, 1, NULL, &allocations, &error);

    must(outcome == DAVIT_ALLOCATED, &error);
    printf("claim-%d: %s\n", number, allocations);
    /* An array of one: what is in it goes into the claim's status. */
    allocations[strlen(allocations) - 1] = 0;
    (void)snprintf(status, sizeof(status), "\"allocation\":%s", allocations + 1);
    must(davit_inventory_set(inventory, claim(text, sizeof(text), number, selectors, status),
                             &error),
         &error);
    davit_free(allocations);
}

static void explain(struct davit_inventory *inventory, int number)
{
    char text[4096];
    const char *claims[] = {claim(text, sizeof(text), number, "", "")};
    struct davit_error error;
    char *allocations;
    char *why;

    if (davit_allocate(inventory, node, claims, 1, NULL, &allocations, &error) ==
        DAVIT_UNALLOCATABLE)
        printf("claim-%d: %s\n", number, error.message);
    why = davit_explain(inventory, node, claims, 1, &error);
    must(why != NULL, &error);
    printf("%s\n", why);
    davit_free(why);
}

static void select_by_memory(void)
{
    static const char expression[] =
        "device.capacity['gpu.example.com'].memory.compareTo(quantity('64Gi')) > 0";
    struct davit_error error;
    struct davit_cel *cel = davit_cel_compile(expression, NULL, &error);
    uint64_t cost;
    bool is_match;
    char *text;

    must(cel != NULL, &error);
    must(davit_cel_eval(cel, "gpu.example.com",
                        "{\"name\":\"gpu-0\",\"capacity\":{\"memory\":{\"value\":\"40Gi\"}}}",
                        &is_match, &cost, &error),
         &error);
    text = davit_cel_print(cel);
    printf("%s: %s at a cost of %llu\n", text, is_match ? "true" : "false",
           (unsigned long long)cost);
    davit_free(text);
    davit_cel_free(cel);
    text = davit_cel_problems("device.foo", NULL);
    printf("%s\n", text);
    davit_free(text);
}

int main(void)
{
    struct davit_error error;
    struct davit_inventory *inventory = davit_inventory_new(NULL, &error);

    must(inventory && davit_inventory_set(inventory, cluster, &error), &error);
    allocate(inventory, 1,
             "{\"cel\":{\"expression\":\"device.capacity['gpu.example.com'].memory"
             ".compareTo(quantity('64Gi')) > 0\"}}");
    allocate(inventory, 2, "");
    explain(inventory, 3);
    select_by_memory();
    davit_inventory_free(inventory);
    return 0;
}
