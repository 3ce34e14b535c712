#include "support/dvtest.h"

#include "base/defs.h"
#include "serve/wire/kube_accept.h"

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
#define DISCOVERY "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

static void the_first_acceptable_form_is_taken(void **state)
{
    static const struct {
        const char *accept;
        enum dv_answer_kind answer;
        int media; /* -1: none can be had */
        int form;
    } cases[] = {
        {"",                                                                                    DV_ANSWER_OBJECTS,   DV_MEDIA_JSON,     DV_FORM_OBJECT      },
        {"*/*",                                                                                 DV_ANSWER_OBJECTS,   DV_MEDIA_JSON,     DV_FORM_OBJECT      },
        {"application/yaml",                                                                    DV_ANSWER_OBJECTS,   DV_MEDIA_YAML,     DV_FORM_OBJECT      },
        {"application/vnd.kubernetes.protobuf,application/json",                                DV_ANSWER_OBJECTS,
         DV_MEDIA_PROTOBUF,                                                                                                             DV_FORM_OBJECT      },
        {"application/json,application/vnd.kubernetes.protobuf",                                DV_ANSWER_OBJECTS,   DV_MEDIA_JSON,
         DV_FORM_OBJECT                                                                                                                                     },
        {"application/json;q=0.5, application/yaml;q=0.9",                                      DV_ANSWER_OBJECTS,   DV_MEDIA_YAML,
         DV_FORM_OBJECT                                                                                                                                     },
        {"application/cbor,application/json",                                                   DV_ANSWER_OBJECTS,   DV_MEDIA_JSON,     DV_FORM_OBJECT      },
        {"text/html,application/xhtml+xml,*/*;q=0.8",                                           DV_ANSWER_OBJECTS,   DV_MEDIA_JSON,
         DV_FORM_OBJECT                                                                                                                                     },
        {TABLE ",application/json",                                                             DV_ANSWER_OBJECTS,   DV_MEDIA_JSON,     DV_FORM_TABLE       },
        {"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io," TABLE,
         DV_ANSWER_OBJECTS,                                                                                          DV_MEDIA_JSON,     DV_FORM_TABLE       },
        {"application/json;as=Table;v=v9;g=meta.k8s.io,application/json",                       DV_ANSWER_OBJECTS,
         DV_MEDIA_JSON,                                                                                                                 DV_FORM_OBJECT      },
        {"application/json;as=Table;v=v9;g=meta.k8s.io",                                        DV_ANSWER_OBJECTS,   -1,                0                   },
        {"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",                        DV_ANSWER_OBJECTS,
         DV_MEDIA_JSON,                                                                                                                 DV_FORM_PARTIAL     },
        {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
         DV_ANSWER_OBJECTS,                                                                                          DV_MEDIA_PROTOBUF, DV_FORM_PARTIAL_LIST},
        {"application/json;stream=watch",                                                       DV_ANSWER_OBJECTS,   DV_MEDIA_JSON,     DV_FORM_OBJECT      },
        {"application/json;stream=nope",                                                        DV_ANSWER_OBJECTS,   -1,                0                   },
        {"application/xml",                                                                     DV_ANSWER_OBJECTS,   -1,                0                   },
        {DISCOVERY,                                                                             DV_ANSWER_DISCOVERY, DV_MEDIA_JSON,     DV_FORM_DISCOVERY   },
        {DISCOVERY,                                                                             DV_ANSWER_OBJECTS,   -1,                0                   },
        {"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
         DV_ANSWER_DISCOVERY,                                                                                        -1,                0                   },
        {"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
         "application/json",                                                           DV_ANSWER_DISCOVERY, DV_MEDIA_JSON,     DV_FORM_OBJECT      },
        {TABLE,                                                                                 DV_ANSWER_REVIEW,    -1,                0                   },
        {TABLE ",application/json",                                                             DV_ANSWER_REVIEW,    DV_MEDIA_JSON,     DV_FORM_OBJECT      },
        {"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",                        DV_ANSWER_REVIEW,
         DV_MEDIA_JSON,                                                                                                                 DV_FORM_PARTIAL     },
        {TABLE,                                                                                 DV_ANSWER_PAGE,      -1,                0                   },
        {"application/yaml",                                                                    DV_ANSWER_PAGE,      DV_MEDIA_YAML,     DV_FORM_OBJECT      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_rendering rendering;
        bool is_found =
            dv_accept_negotiate(dv_str_from_c(cases[i].accept), cases[i].answer, &rendering);

        assert_int_equal(is_found, cases[i].media >= 0);
        if (!is_found)
            continue;
        assert_int_equal((int)rendering.media, cases[i].media);
        assert_int_equal((int)rendering.form, cases[i].form);
    }
}

static void types_that_are_none_of_ours_are_told(void **state)
{
    (void)state;
    assert_true(dv_accept_has_ours(DV_STR("")));
    assert_true(dv_accept_has_ours(DV_STR("text/html, application/json;x=y")));
    assert_false(dv_accept_has_ours(DV_STR("application/*")));
    assert_false(dv_accept_has_ours(DV_STR("garbage")));
}

static void bodies_are_json_unless_they_say_otherwise(void **state)
{
    static const struct {
        const char *type;
        int media; /* -1: unknown */
    } cases[] = {
        {"",                                    DV_MEDIA_JSON    },
        {"application/json; charset=utf-8",     DV_MEDIA_JSON    },
        {"Application/YAML",                    DV_MEDIA_YAML    },
        {"application/vnd.kubernetes.protobuf", DV_MEDIA_PROTOBUF},
        {"text/plain",                          -1               },
        {"application/jsonx",                   -1               },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        enum dv_media media = DV_MEDIA_JSON;

        assert_int_equal(dv_content_type_parse(dv_str_from_c(cases[i].type), &media),
                         cases[i].media >= 0);
        if (cases[i].media >= 0)
            assert_int_equal((int)media, cases[i].media);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_acceptable_form_is_taken),
        cmocka_unit_test(types_that_are_none_of_ours_are_told),
        cmocka_unit_test(bodies_are_json_unless_they_say_otherwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
