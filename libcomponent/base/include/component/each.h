/*
 * each.h - what the macros of other headers are made of.  Not to be included for itself.
 *
 *     COMPONENT_EACH_(m, a, b, ...)        m(a), m(b), ...; 66 arguments at most
 *     COMPONENT_SIZED_(type, .a = 1, ...)  initialises a struct type by name, its size too
 *
 * A macro can do the first only by one more macro for each number of arguments.
 */
#ifndef COMPONENT_EACH_H
#define COMPONENT_EACH_H

#define COMPONENT_EACH_(m, ...) COMPONENT_EACH_N_(__VA_ARGS__)(m, __VA_ARGS__)
#define COMPONENT_EACH_N_(...) \
	COMPONENT_EACH_PICK_(__VA_ARGS__, COMPONENT_EACH_66_, COMPONENT_EACH_65_, COMPONENT_EACH_64_, COMPONENT_EACH_63_, COMPONENT_EACH_62_, \
		COMPONENT_EACH_61_, COMPONENT_EACH_60_, COMPONENT_EACH_59_, COMPONENT_EACH_58_, COMPONENT_EACH_57_, \
		COMPONENT_EACH_56_, COMPONENT_EACH_55_, COMPONENT_EACH_54_, COMPONENT_EACH_53_, COMPONENT_EACH_52_, \
		COMPONENT_EACH_51_, COMPONENT_EACH_50_, COMPONENT_EACH_49_, COMPONENT_EACH_48_, COMPONENT_EACH_47_, \
		COMPONENT_EACH_46_, COMPONENT_EACH_45_, COMPONENT_EACH_44_, COMPONENT_EACH_43_, COMPONENT_EACH_42_, \
		COMPONENT_EACH_41_, COMPONENT_EACH_40_, COMPONENT_EACH_39_, COMPONENT_EACH_38_, COMPONENT_EACH_37_, \
		COMPONENT_EACH_36_, COMPONENT_EACH_35_, COMPONENT_EACH_34_, COMPONENT_EACH_33_, COMPONENT_EACH_32_, \
		COMPONENT_EACH_31_, COMPONENT_EACH_30_, COMPONENT_EACH_29_, COMPONENT_EACH_28_, COMPONENT_EACH_27_, \
		COMPONENT_EACH_26_, COMPONENT_EACH_25_, COMPONENT_EACH_24_, COMPONENT_EACH_23_, COMPONENT_EACH_22_, \
		COMPONENT_EACH_21_, COMPONENT_EACH_20_, COMPONENT_EACH_19_, COMPONENT_EACH_18_, COMPONENT_EACH_17_, \
		COMPONENT_EACH_16_, COMPONENT_EACH_15_, COMPONENT_EACH_14_, COMPONENT_EACH_13_, COMPONENT_EACH_12_, \
		COMPONENT_EACH_11_, COMPONENT_EACH_10_, COMPONENT_EACH_9_, COMPONENT_EACH_8_, COMPONENT_EACH_7_, \
		COMPONENT_EACH_6_, COMPONENT_EACH_5_, COMPONENT_EACH_4_, COMPONENT_EACH_3_, COMPONENT_EACH_2_, \
		COMPONENT_EACH_1_, 0)
#define COMPONENT_EACH_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, \
		a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, \
		a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, \
		a63, a64, a65, a66, name, ...) \
	name
#define COMPONENT_EACH_1_(m, a) m(a)
#define COMPONENT_EACH_2_(m, a, ...) m(a), COMPONENT_EACH_1_(m, __VA_ARGS__)
#define COMPONENT_EACH_3_(m, a, ...) m(a), COMPONENT_EACH_2_(m, __VA_ARGS__)
#define COMPONENT_EACH_4_(m, a, ...) m(a), COMPONENT_EACH_3_(m, __VA_ARGS__)
#define COMPONENT_EACH_5_(m, a, ...) m(a), COMPONENT_EACH_4_(m, __VA_ARGS__)
#define COMPONENT_EACH_6_(m, a, ...) m(a), COMPONENT_EACH_5_(m, __VA_ARGS__)
#define COMPONENT_EACH_7_(m, a, ...) m(a), COMPONENT_EACH_6_(m, __VA_ARGS__)
#define COMPONENT_EACH_8_(m, a, ...) m(a), COMPONENT_EACH_7_(m, __VA_ARGS__)
#define COMPONENT_EACH_9_(m, a, ...) m(a), COMPONENT_EACH_8_(m, __VA_ARGS__)
#define COMPONENT_EACH_10_(m, a, ...) m(a), COMPONENT_EACH_9_(m, __VA_ARGS__)
#define COMPONENT_EACH_11_(m, a, ...) m(a), COMPONENT_EACH_10_(m, __VA_ARGS__)
#define COMPONENT_EACH_12_(m, a, ...) m(a), COMPONENT_EACH_11_(m, __VA_ARGS__)
#define COMPONENT_EACH_13_(m, a, ...) m(a), COMPONENT_EACH_12_(m, __VA_ARGS__)
#define COMPONENT_EACH_14_(m, a, ...) m(a), COMPONENT_EACH_13_(m, __VA_ARGS__)
#define COMPONENT_EACH_15_(m, a, ...) m(a), COMPONENT_EACH_14_(m, __VA_ARGS__)
#define COMPONENT_EACH_16_(m, a, ...) m(a), COMPONENT_EACH_15_(m, __VA_ARGS__)
#define COMPONENT_EACH_17_(m, a, ...) m(a), COMPONENT_EACH_16_(m, __VA_ARGS__)
#define COMPONENT_EACH_18_(m, a, ...) m(a), COMPONENT_EACH_17_(m, __VA_ARGS__)
#define COMPONENT_EACH_19_(m, a, ...) m(a), COMPONENT_EACH_18_(m, __VA_ARGS__)
#define COMPONENT_EACH_20_(m, a, ...) m(a), COMPONENT_EACH_19_(m, __VA_ARGS__)
#define COMPONENT_EACH_21_(m, a, ...) m(a), COMPONENT_EACH_20_(m, __VA_ARGS__)
#define COMPONENT_EACH_22_(m, a, ...) m(a), COMPONENT_EACH_21_(m, __VA_ARGS__)
#define COMPONENT_EACH_23_(m, a, ...) m(a), COMPONENT_EACH_22_(m, __VA_ARGS__)
#define COMPONENT_EACH_24_(m, a, ...) m(a), COMPONENT_EACH_23_(m, __VA_ARGS__)
#define COMPONENT_EACH_25_(m, a, ...) m(a), COMPONENT_EACH_24_(m, __VA_ARGS__)
#define COMPONENT_EACH_26_(m, a, ...) m(a), COMPONENT_EACH_25_(m, __VA_ARGS__)
#define COMPONENT_EACH_27_(m, a, ...) m(a), COMPONENT_EACH_26_(m, __VA_ARGS__)
#define COMPONENT_EACH_28_(m, a, ...) m(a), COMPONENT_EACH_27_(m, __VA_ARGS__)
#define COMPONENT_EACH_29_(m, a, ...) m(a), COMPONENT_EACH_28_(m, __VA_ARGS__)
#define COMPONENT_EACH_30_(m, a, ...) m(a), COMPONENT_EACH_29_(m, __VA_ARGS__)
#define COMPONENT_EACH_31_(m, a, ...) m(a), COMPONENT_EACH_30_(m, __VA_ARGS__)
#define COMPONENT_EACH_32_(m, a, ...) m(a), COMPONENT_EACH_31_(m, __VA_ARGS__)
#define COMPONENT_EACH_33_(m, a, ...) m(a), COMPONENT_EACH_32_(m, __VA_ARGS__)
#define COMPONENT_EACH_34_(m, a, ...) m(a), COMPONENT_EACH_33_(m, __VA_ARGS__)
#define COMPONENT_EACH_35_(m, a, ...) m(a), COMPONENT_EACH_34_(m, __VA_ARGS__)
#define COMPONENT_EACH_36_(m, a, ...) m(a), COMPONENT_EACH_35_(m, __VA_ARGS__)
#define COMPONENT_EACH_37_(m, a, ...) m(a), COMPONENT_EACH_36_(m, __VA_ARGS__)
#define COMPONENT_EACH_38_(m, a, ...) m(a), COMPONENT_EACH_37_(m, __VA_ARGS__)
#define COMPONENT_EACH_39_(m, a, ...) m(a), COMPONENT_EACH_38_(m, __VA_ARGS__)
#define COMPONENT_EACH_40_(m, a, ...) m(a), COMPONENT_EACH_39_(m, __VA_ARGS__)
#define COMPONENT_EACH_41_(m, a, ...) m(a), COMPONENT_EACH_40_(m, __VA_ARGS__)
#define COMPONENT_EACH_42_(m, a, ...) m(a), COMPONENT_EACH_41_(m, __VA_ARGS__)
#define COMPONENT_EACH_43_(m, a, ...) m(a), COMPONENT_EACH_42_(m, __VA_ARGS__)
#define COMPONENT_EACH_44_(m, a, ...) m(a), COMPONENT_EACH_43_(m, __VA_ARGS__)
#define COMPONENT_EACH_45_(m, a, ...) m(a), COMPONENT_EACH_44_(m, __VA_ARGS__)
#define COMPONENT_EACH_46_(m, a, ...) m(a), COMPONENT_EACH_45_(m, __VA_ARGS__)
#define COMPONENT_EACH_47_(m, a, ...) m(a), COMPONENT_EACH_46_(m, __VA_ARGS__)
#define COMPONENT_EACH_48_(m, a, ...) m(a), COMPONENT_EACH_47_(m, __VA_ARGS__)
#define COMPONENT_EACH_49_(m, a, ...) m(a), COMPONENT_EACH_48_(m, __VA_ARGS__)
#define COMPONENT_EACH_50_(m, a, ...) m(a), COMPONENT_EACH_49_(m, __VA_ARGS__)
#define COMPONENT_EACH_51_(m, a, ...) m(a), COMPONENT_EACH_50_(m, __VA_ARGS__)
#define COMPONENT_EACH_52_(m, a, ...) m(a), COMPONENT_EACH_51_(m, __VA_ARGS__)
#define COMPONENT_EACH_53_(m, a, ...) m(a), COMPONENT_EACH_52_(m, __VA_ARGS__)
#define COMPONENT_EACH_54_(m, a, ...) m(a), COMPONENT_EACH_53_(m, __VA_ARGS__)
#define COMPONENT_EACH_55_(m, a, ...) m(a), COMPONENT_EACH_54_(m, __VA_ARGS__)
#define COMPONENT_EACH_56_(m, a, ...) m(a), COMPONENT_EACH_55_(m, __VA_ARGS__)
#define COMPONENT_EACH_57_(m, a, ...) m(a), COMPONENT_EACH_56_(m, __VA_ARGS__)
#define COMPONENT_EACH_58_(m, a, ...) m(a), COMPONENT_EACH_57_(m, __VA_ARGS__)
#define COMPONENT_EACH_59_(m, a, ...) m(a), COMPONENT_EACH_58_(m, __VA_ARGS__)
#define COMPONENT_EACH_60_(m, a, ...) m(a), COMPONENT_EACH_59_(m, __VA_ARGS__)
#define COMPONENT_EACH_61_(m, a, ...) m(a), COMPONENT_EACH_60_(m, __VA_ARGS__)
#define COMPONENT_EACH_62_(m, a, ...) m(a), COMPONENT_EACH_61_(m, __VA_ARGS__)
#define COMPONENT_EACH_63_(m, a, ...) m(a), COMPONENT_EACH_62_(m, __VA_ARGS__)
#define COMPONENT_EACH_64_(m, a, ...) m(a), COMPONENT_EACH_63_(m, __VA_ARGS__)
#define COMPONENT_EACH_65_(m, a, ...) m(a), COMPONENT_EACH_64_(m, __VA_ARGS__)
#define COMPONENT_EACH_66_(m, a, ...) m(a), COMPONENT_EACH_65_(m, __VA_ARGS__)

#ifdef __cplusplus
/* An object of C's designators, which C++17 does not have and of which C++20 wants all:
 * COMPONENT_SET_(object, .a = 1, .b = 2) is object .a = 1, object .b = 2 within a function. */
extern "C++" { /* whoever includes this may do so within extern "C" */
template <class T>
constexpr T
component_zero()
{
	return T();
}
}
#define COMPONENT_SET_ONE_(assignment) static_cast<void>(component_object_ assignment)
#define COMPONENT_SET_(type, object, ...)                                              \
	[](type component_object_) {                                                   \
		COMPONENT_EACH_(COMPONENT_SET_ONE_, __VA_ARGS__);                      \
		return component_object_;                                              \
	}(object)
#define COMPONENT_SIZED_(type, ...) \
	COMPONENT_SET_(struct type, component_zero<struct type>(), .size = sizeof(struct type), __VA_ARGS__)
#else
#define COMPONENT_SIZED_(type, ...) { .size = sizeof(struct type), __VA_ARGS__ }
#endif

#endif
