use super::*;

fn kernels(text: &str) -> Vec<Signature> {
    Declarations::parse(text).kernels().unwrap()
}

fn described(parameter: &Parameter) -> String {
    let access = match parameter.pointer {
        None => "value",
        Some(PointerAccess::Read) => "read",
        Some(PointerAccess::Write) => "write",
        Some(PointerAccess::Update) => "update",
    };
    format!("{} {:?} {access}", parameter.name, parameter.element)
}

#[test]
fn parameters_have_the_type_and_the_access_that_the_text_gives_them() {
    let text = r#"
        // A kernel in a comment: __global__ void no(int a);
        #define UNUSED __global__
        struct Particle { float x; };
        extern "C" __global__ void __launch_bounds__(4 * 32) step(
            const Particle* __restrict__ from, Particle *to, /* masses */ float const * mass,
            unsigned long long int* count /* updated */, const unsigned n, bool flag,
            half *low, uint8_t bytes[])
        { if (n < 3) to[0] = from[0]; }
    "#;
    let [kernel] = &kernels(text)[..] else {
        panic!("one kernel")
    };
    assert_eq!((&*kernel.name, kernel.block_threads), ("step", Some(128)));
    let found: Vec<String> = kernel.parameters.iter().map(described).collect();
    assert_eq!(
        found,
        [
            "from Struct(\"Particle\") read",
            "to Struct(\"Particle\") write",
            "mass Number(F32) read",
            "count Number(U64) update",
            "n Number(U32) value",
            "flag Number(U8) value",
            "low Number(F16) write",
            "bytes Number(U8) write",
        ]
    );
}

#[test]
fn macros_are_parameters_and_name_kernels_and_constants_give_the_block() {
    let text = "
        #define KERNEL(...) extern \"C\" __global__ void __launch_bounds__(__VA_ARGS__)
        #define CELL_PARAMS const unsigned *cell_start, \\
            const int *cell_x
        constexpr unsigned WARPS = 4;
        constexpr unsigned ROWS = 2048 / WARPS;
        namespace areas { constexpr int THREADS = 32 * WARPS; }
        KERNEL(areas::THREADS, 2)
        near(const unsigned* header, CELL_PARAMS, float* out) {}
        KERNEL(ROWS) other(void) {}
    ";
    let kernels = kernels(text);
    assert_eq!(kernels[0].block_threads, Some(128));
    let names: Vec<_> = kernels[0]
        .parameters
        .iter()
        .map(|parameter| (&*parameter.name, parameter.macro_name.as_deref()))
        .collect();
    let cells = Some("CELL_PARAMS");
    assert_eq!(
        names,
        [
            ("header", None),
            ("cell_start", cells),
            ("cell_x", cells),
            ("out", None)
        ]
    );
    assert_eq!(
        (kernels[1].parameters.len(), kernels[1].block_threads),
        (0, None)
    );
}

#[test]
fn what_a_kernel_cannot_take_is_an_error_with_its_line() {
    let error = |parameter: &str| {
        let text = format!("\n__global__ void k(int a,\n{parameter}) {{}}");
        Declarations::parse(&text)
            .kernels()
            .unwrap_err()
            .to_string()
    };
    assert!(error("float** b").starts_with("line 3: a pointer to pointers"));
    assert!(error("float& b").starts_with("line 3: a kernel"));
    assert!(error("long b").starts_with("line 3: the type long"));
    assert!(error("float*").starts_with("line 3: the parameter has no name"));
    assert!(error("int b /* updated */").starts_with("line 3: only"));
    assert!(error("const int* b /* updated */").starts_with("line 3: only"));
}

#[test]
fn structs_are_laid_out_as_cuda_does() {
    let text = "
        constexpr int N = 3;
        struct Inner { short a, b; char c; };
        struct alignas(16) Outer {
            char first;
            const float *x, *y; double z[N];
            Inner inner; float4 vector;
            int* counts /* updated */;
        };
        struct Bad { int f(); };
        struct Endless { Endless again; };
    ";
    let text = Declarations::parse(text);
    let inner = text.layout("Inner", 1).unwrap();
    assert_eq!((inner.bytes, inner.align), (6, 2));
    let outer = text.layout("Outer", 1).unwrap();
    let float = CudaType::Number(NumberType::F32);
    assert_eq!(
        outer.pointers,
        [
            (8, PointerAccess::Read, float.clone()),
            (16, PointerAccess::Read, float),
            (80, PointerAccess::Update, CudaType::Number(NumberType::I32)),
        ]
    );
    assert_eq!((outer.bytes, outer.align), (96, 16));
    assert!(text.layout("Bad", 1).is_err());
    assert!(text.layout("Endless", 1).is_err());
    let error = text.layout("Other", 1).unwrap_err().to_string();
    assert!(error.contains("struct Other"), "{error}");
}

#[test]
fn a_launch_bound_may_name_macros() {
    let bound = |text: &str, bound: &str| {
        let text = format!("{text}\n__global__ void __launch_bounds__({bound}) k() {{}}");
        let kernel = kernels(&text).remove(0);
        (kernel.block_threads, kernel.unread_bound)
    };
    let sides = "#define X 16\n#define Y (8)\n#define XY (X * Y)";
    assert_eq!(bound(sides, "X"), (Some(16), None));
    assert_eq!(bound(sides, "X * Y, 2"), (Some(128), None));
    assert_eq!(bound(sides, "XY"), (Some(128), None));
    assert_eq!(bound(sides, "X + Y"), (None, Some(4)));
    assert_eq!(bound(sides, "Z"), (None, Some(4)));
    // A macro of itself, and one of a later one.
    assert_eq!(
        bound("#define A A\n#define B C\n#define C 4", "A"),
        (None, Some(4))
    );
    assert_eq!(
        bound("#define A A\n#define B C\n#define C 4", "C"),
        (Some(4), None)
    );
}

#[test]
fn each_constant_and_each_inner_struct_is_looked_up_once() {
    // A hundred look-ups for each one of the level above would not end.
    let constants: String = (1..=20)
        .map(|level| {
            let factors = vec![format!("A{}", level - 1); 100].join(" * ");
            format!("constexpr int A{level} = {factors};")
        })
        .collect();
    let kernel = "__global__ void __launch_bounds__(2 * A20) k() {}";
    let text = format!("constexpr int A0 = 1; {constants} {kernel}");
    assert_eq!(kernels(&text)[0].block_threads, Some(2));

    let structs: String = (1..=7)
        .map(|level| {
            let member = format!("S{} a;", level - 1);
            format!("struct S{level} {{ {} }};", member.repeat(100))
        })
        .collect();
    let text = Declarations::parse(&format!("struct S0 {{}}; {structs}"));
    assert_eq!(text.layout("S7", 1).unwrap().bytes, 0);
}

#[test]
fn what_a_struct_cannot_have_is_an_error() {
    let error = |text: &str| {
        Declarations::parse(text)
            .layout("S", 1)
            .unwrap_err()
            .to_string()
    };
    let length = error("struct S { int a[ };");
    assert!(
        length.starts_with("line 1: ") && length.contains("length"),
        "{length}"
    );
    for member in [",", "[3]"] {
        let text = format!("struct S {{ {member} }};");
        let error = error(&text);
        assert!(
            error.starts_with("line 1: ") && error.contains("type"),
            "{error}"
        );
    }
    // The layout would end with the inner struct.
    let inner = error("struct S {\n struct { int x; } a; int b; };");
    assert!(
        inner.starts_with("line 2: ") && inner.contains("members"),
        "{inner}"
    );
    for text in [
        "struct A { char a[4294967295]; }; struct S { A a[4294967295]; };",
        "struct S { int* a[4294967295]; };",
        "struct alignas(4294967295) S { int a; };",
    ] {
        let large = error(text);
        assert!(
            large.starts_with("line 1: ") && large.contains("16777216 bytes"),
            "{large}"
        );
    }
    let empty = Declarations::parse("struct alignas(0) S {};");
    assert_eq!(empty.layout("S", 1).unwrap().bytes, 0);
}

#[test]
fn alignments_and_bases_of_structs_are_read_or_refused() {
    let layout = |text: &str| Declarations::parse(text).layout("S", 1);
    for (head, bytes) in [
        ("struct __align__(16) S", 16),
        ("constexpr int N = 32;\nstruct alignas(N) S", 32),
        ("struct __align__(8) alignas(2) S", 16),
    ] {
        let layout = layout(&format!("{head} {{ float x, y, z; }};")).unwrap();
        assert_eq!(layout.bytes, bytes, "{head}");
    }
    for (head, expected) in [
        ("struct alignas(float4) S", "alignment"),
        ("struct B { int b; };\nstruct S : B", "data members alone"),
    ] {
        let error = layout(&format!("{head} {{ float x, y, z; }};")).unwrap_err();
        assert!(error.message.contains(expected), "{head}: {error}");
    }
}

#[test]
fn attributes_before_the_name_are_no_parameters() {
    let text = "extern \"C\" __global__ void __attribute__((used)) __cluster_dims__(2, 1, 1) \
                __launch_bounds__(64) __maxnreg__(32) f(float* x) {}";
    let kernel = &Declarations::parse(text).kernels().unwrap()[0];
    assert_eq!((&*kernel.name, kernel.block_threads), ("f", Some(64)));
    assert_eq!(kernel.parameters[0].name, "x");
}

#[test]
fn members_follow_an_array_in_one_declaration() {
    let text = "constexpr int N = 3; struct S { float a[N], b, *c; };";
    let layout = Declarations::parse(text).layout("S", 1).unwrap();
    let pointer = CudaType::Number(NumberType::F32);
    assert_eq!(layout.pointers, [(16, PointerAccess::Write, pointer)]);
    assert_eq!((layout.bytes, layout.align), (24, 8));
}

#[test]
fn pointers_are_listed_as_far_as_a_kernel_can_be_passed_them() {
    let layout = |count: u32| {
        Declarations::parse(&format!("struct S {{ float* a[{count}]; }};")).layout("S", 1)
    };
    assert_eq!(layout(4_095).unwrap().pointers.len(), 4_095);
    let error = layout(4_096).unwrap_err();
    assert!(error.message.contains("32764"), "{error}");
}

#[test]
fn an_empty_place_in_a_list_of_parameters_is_an_error() {
    for text in ["f(int a,, int b)", "f(int a,)", "f(,)"] {
        let error = Declarations::parse(&format!("__global__ void\n{text} {{}}")).kernels();
        let error = error.unwrap_err();
        assert!(
            error.line == 2 && error.message.contains("empty place"),
            "{error}"
        );
    }
    for text in ["f()", "f(void)", "f(NONE)"] {
        let text = format!("#define NONE\n__global__ void {text} {{}}");
        assert_eq!(
            Declarations::parse(&text).kernels().unwrap()[0].parameters,
            []
        );
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    let kernel = "#define K(x) __global__ void\nK(1) a(const int* b[], S c) { \"\\é\" } /* é";
    let structs = "struct alignas(0) S { int a[2], *b; S c; }; struct alignas(8) S {{ float[3] }";
    for text in [kernel, structs] {
        for from in 0..text.len() {
            for to in from..=text.len() {
                if let Some(part) = text.get(from..to) {
                    let read = Declarations::parse(part);
                    let _ = (read.kernels(), read.layout("S", 1));
                }
            }
        }
    }
}

#[test]
fn reading_takes_time_in_proportion_to_the_text() {
    let many = |part: &dyn Fn(usize) -> String| (0..30_000).map(part).collect::<String>();
    let macros = many(&|number| format!("#define K{number}(x) __global__\n"));
    let open = "__global__ void f((".repeat(100_000);
    let start = std::time::Instant::now();
    for text in [open, macros + &"word ".repeat(300_000)] {
        assert_eq!(Declarations::parse(&text).kernels().unwrap(), []);
    }
    // A macro with many parameters, many times.
    let parameters = many(&|number| format!("float a{number}, "));
    let uses = "P, ".repeat(30_000);
    let text = format!("#define P {parameters}float b\n__global__ void f({uses}float c) {{}}");
    let error = Declarations::parse(&text).kernels().unwrap_err();
    assert!(error.message.contains("1024"), "{error}");
    // A macro of nothing but commas, many times.
    let commas = format!("#define P {}\n__global__ void\nf(", ",".repeat(30_000));
    let error = Declarations::parse(&(commas + &uses + "float c) {}")).kernels();
    assert_eq!(error.unwrap_err().line, 3);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
