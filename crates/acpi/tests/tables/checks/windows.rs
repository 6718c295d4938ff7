//! Checks of a single CEDT.

use super::*;

const GOOD: FixedMemoryWindow<'_> = FixedMemoryWindow {
    reserved1: 0,
    base: GIB,
    size_bytes: GIB,
    encoded_ways: 0,
    arithmetic: 0,
    reserved2: 0,
    encoded_granularity: 0,
    restrictions: WindowRestrictions(0),
    qos_group: 0,
    targets: List::Values(&[7]),
};

fn bridge() -> cedt::Entry<'static> {
    cedt::Entry::HostBridge(HostBridge { uid: 7, version: 1, ..Default::default() })
}

/// Returns the findings of a table with one host bridge and these windows.
fn problems(windows: &[FixedMemoryWindow<'_>]) -> Vec<&'static str> {
    let windows = windows.iter().map(|window| cedt::Entry::Window(*window));
    codes(&cedt(&std::iter::once(bridge()).chain(windows).collect::<Vec<_>>()))
}

#[test]
fn odd_cxl_windows_are_found() {
    assert_eq!(problems(&[GOOD]), [""; 0]);
    assert_eq!(
        problems(&[GOOD, FixedMemoryWindow { base: GIB + GIB / 2, ..GOOD }]),
        ["windows-overlap"]
    );
    assert_eq!(problems(&[FixedMemoryWindow { base: GIB + 4096, ..GOOD }]), ["window-unaligned"]);
    assert_eq!(problems(&[FixedMemoryWindow { size_bytes: 0, ..GOOD }]), ["field-zero"]);
    assert_eq!(problems(&[FixedMemoryWindow { encoded_ways: 5, ..GOOD }]), ["field-undefined"]);
    assert_eq!(problems(&[FixedMemoryWindow { arithmetic: 2, ..GOOD }]), ["field-undefined"]);
    let stranger = [8];
    let targets = List::Values(&stranger);
    assert_eq!(problems(&[FixedMemoryWindow { targets, ..GOOD }]), ["target-unknown"]);
    assert_eq!(codes(&cedt(&[bridge(), bridge()])), ["id-repeated"]);
}
