//! Allocators and language runtimes, which are on the path of every allocation but are not the
//! user's code.

use numalab_record::{CodePlace, Region};

/// Marks by which a runtime's code is recognised.
struct Runtime {
    /// Prefixes of its file names.
    objects: &'static [&'static str],
    /// Prefixes of its function names, for when it is linked into the program.
    functions: &'static [&'static str],
    /// Substrings of its source paths.
    sources: &'static [&'static str],
    /// True if it owns the memory of the program's objects, so that user code has no address to
    /// place.
    owns_objects: bool,
}

const fn library(
    objects: &'static [&'static str],
    functions: &'static [&'static str],
    sources: &'static [&'static str],
) -> Runtime {
    Runtime { objects, functions, sources, owns_objects: false }
}

const fn owner(
    objects: &'static [&'static str],
    functions: &'static [&'static str],
    sources: &'static [&'static str],
) -> Runtime {
    Runtime { objects, functions, sources, owns_objects: true }
}

const RUNTIMES: [Runtime; 11] = [
    // glibc and musl.
    library(
        &["libc.so", "libc-", "ld-linux", "ld-musl", "libpthread"],
        &[
            "malloc",
            "calloc",
            "realloc",
            "reallocarray",
            "memalign",
            "aligned_alloc",
            "posix_memalign",
            "valloc",
            "mmap",
            "mremap",
            "sbrk",
            "brk",
            "_int_malloc",
            "sysmalloc",
            "__libc_",
            "__mmap",
            "__brk",
            "__sbrk",
            "__default_morecore",
            "new_heap",
            "tcache_",
        ],
        &["/malloc/malloc.c", "/malloc/arena.c", "/src/malloc/"],
    ),
    library(&["libjemalloc"], &["je_", "_rjem_", "jemalloc"], &["jemalloc/src/", "jemalloc.c"]),
    library(&["libtcmalloc"], &["tc_", "tcmalloc::"], &["/tcmalloc/", "/gperftools/"]),
    library(&["libmimalloc"], &["mi_", "_mi_"], &["/mimalloc/"]),
    // The C++ standard library.
    library(
        &["libstdc++", "libc++"],
        &["operator new", "__gnu_cxx::"],
        &["/include/c++/", "/libstdc++-v3/"],
    ),
    // The Rust standard library.
    library(
        &["libstd-"],
        &[
            "alloc::", "core::", "std::", "<alloc::", "<core::", "<std::", "__rust_", "__rdl_",
            "__rustc",
        ],
        &["/rustc/", "/library/alloc/", "/library/core/", "/library/std/", "/lib/rustlib/src/"],
    ),
    // OpenMP runtimes.
    library(
        &["libgomp", "libomp", "libiomp5"],
        &["GOMP_", "gomp_", "__kmp", "omp_"],
        &["/libgomp/"],
    ),
    // libnuma, which programs call to allocate on a node.
    library(&["libnuma"], &["numa_alloc"], &["/libnuma.c"]),
    // Go.
    owner(
        &[],
        &["runtime.", "runtime/", "internal/runtime", "_cgo_"],
        &["/src/runtime/", "/runtime/cgo/"],
    ),
    // Java.
    owner(&["libjvm", "libjli", "libjava"], &["JavaMain", "JVM_"], &["/hotspot/"]),
    // Python.
    owner(
        &["libpython", "python3", "python2"],
        &["PyObject_", "_PyObject_", "PyMem_", "_PyMem_", "_PyEval_", "PyEval_"],
        &["/Objects/obmalloc.c", "/Python/ceval.c"],
    ),
];

impl Runtime {
    fn has(&self, place: &CodePlace) -> bool {
        let file = place.object.rsplit('/').next().unwrap_or_default();
        let is_of_function =
            |function: &String| self.functions.iter().any(|name| begins(function, name));
        let is_of_source = |line: &String| self.sources.iter().any(|path| line.contains(path));
        self.objects.iter().any(|object| file.starts_with(object))
            || place.function.as_ref().is_some_and(is_of_function)
            || place.line.as_ref().is_some_and(is_of_source)
    }
}

/// Returns `true` if a function has this name, or begins with it if the name ends in punctuation.
fn begins(function: &str, name: &str) -> bool {
    let is_prefix = name.ends_with(['_', '.', '/', ':', ' ']) || name.starts_with("_");
    function == name || is_prefix && function.starts_with(name)
}

/// Returns `true` if code belongs to an allocator or a runtime.
pub(super) fn is_of_runtime(place: &CodePlace) -> bool {
    RUNTIMES.iter().any(|runtime| runtime.has(place))
}

/// Returns `true` if a language runtime allocated a region for objects that it places, collects or
/// counts itself, so that no line of the program could bind or copy them.
pub fn is_runtimes_own(region: &Region) -> bool {
    let places = || {
        let touched = region.first_touches.iter().flat_map(|touches| &touches.at);
        region.made_at.iter().chain(touched)
    };
    let mut owners = RUNTIMES.iter().filter(|runtime| runtime.owns_objects);
    owners.any(|runtime| places().any(|place| runtime.has(place)))
}

#[cfg(test)]
mod tests {
    use numalab_record::FirstTouches;

    use super::super::user_code;
    use super::*;

    fn place(object: &str, function: &str, line: Option<&str>) -> CodePlace {
        CodePlace {
            object: object.to_owned(),
            offset: 0,
            function: Some(function.to_owned()),
            line: line.map(str::to_owned),
        }
    }

    fn named(places: &[CodePlace]) -> Option<&str> {
        user_code(places)?.function.as_deref()
    }

    #[test]
    fn a_place_is_named_by_the_first_frame_of_the_user_s_code() {
        let own = place("/home/me/solver", "grid_make", Some("grid.c:12"));
        for frames in [
            vec![place("/usr/lib/libc.so.6", "mmap64", Some("mmap64.c:58"))],
            vec![place(
                "/home/me/solver",
                "_rjem_je_extent_alloc",
                Some("jemalloc/src/extent.c:9"),
            )],
            vec![place("/usr/lib/libtcmalloc.so.4", "sbrk", Some("system-alloc.cc:1"))],
            vec![place("/usr/lib/libmimalloc.so.2", "unix_mmap", Some("prim.c:3"))],
            vec![place(
                "/home/me/solver",
                "alloc::raw_vec::finish_grow",
                Some("/rustc/1/alloc.rs:5"),
            )],
            vec![place(
                "/home/me/solver",
                "std::vector<int>::resize",
                Some("/usr/include/c++/12/v.h:1"),
            )],
            vec![place("/usr/lib/libgomp.so.1", "gomp_thread_start", Some("team.c:129"))],
            vec![
                place(
                    "/home/me/solver",
                    "runtime.mmap",
                    Some("/usr/lib/go/src/runtime/cgo_mmap.go:47"),
                ),
                place(
                    "/home/me/solver",
                    "runtime.mallocgc",
                    Some("/usr/lib/go/src/runtime/malloc.go:9"),
                ),
            ],
        ] {
            let places: Vec<CodePlace> = frames.into_iter().chain([own.clone()]).collect();
            assert_eq!(named(&places), Some("grid_make"), "{places:?}");
        }
        let own = place("/home/me/solver", "mallocate", None);
        assert_eq!(named(&[place("/lib/libc.so.6", "malloc", None), own]), Some("mallocate"));
    }

    #[test]
    fn where_all_frames_are_a_runtime_s_none_is_named_as_a_line_to_change() {
        let frames =
            [place("/home/me/app", "runtime.mmap", Some("/go/src/runtime/cgo_mmap.go:47"))];
        assert_eq!(user_code(&frames), None);
    }

    #[test]
    fn objects_of_go_java_and_python_belong_to_their_runtimes_and_those_of_c_do_not() {
        let made = |place: CodePlace| Region { made_at: vec![place], ..Region::default() };
        assert!(is_runtimes_own(&made(place("/home/me/app", "runtime.sysAlloc", None))));
        assert!(is_runtimes_own(&made(place("/usr/lib/jvm/lib/server/libjvm.so", "f", None))));
        assert!(is_runtimes_own(&made(place("/usr/bin/python3.11", "f", None))));
        assert!(!is_runtimes_own(&made(place("/lib/libc.so.6", "malloc", None))));
        let at = vec![place("/usr/bin/python3", "f", None)];
        let touches = FirstTouches { thread: 0, cpu_node: 0, pages: 1, at };
        let touched = Region { first_touches: vec![touches], ..Region::default() };
        assert!(is_runtimes_own(&touched));
    }
}
