use numalab_record::study::Setting;
use serde_json::{Value, json};

use super::*;

fn inputs(settings: Value) -> Inputs {
    let settings = GuestsSettings::of(settings).unwrap();
    Inputs { settings, workloads: Vec::new(), builds: BTreeMap::new() }
}

fn wanted(inputs: &Inputs, settings: &[(&str, Setting)]) -> GuestTreatment {
    let settings = settings.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    let treatment = Treatment { name: "t".to_owned(), levels: Vec::new(), settings };
    GuestTreatment::of(&treatment, &inputs.settings).unwrap()
}

fn text(text: &str) -> Setting {
    Setting::Text(text.to_owned())
}

fn refused(settings: Value, treatments: &[&[(&str, Setting)]]) -> String {
    let inputs = inputs(settings);
    let wanted: Vec<GuestTreatment> = treatments.iter().map(|of| wanted(&inputs, of)).collect();
    inputs.check_settings(&wanted).unwrap_err().to_string()
}

#[test]
fn contradictory_settings_are_refused_with_the_allowed_ones() {
    let (on, off) = ([("numa", text("on"))], [("numa", text("off"))]);
    assert_eq!(
        refused(json!({ "on-this-dom0": true }), &[&on, &off]),
        "factor numa: a machine that is already running: expected a Xen in QEMU: numa= is chosen \
         at boot"
    );
    let pools = [("cpupools", Setting::Bool(true))];
    assert_eq!(
        refused(json!({ "on-this-dom0": true }), &[&pools]),
        "factor cpupools: a machine that others may use: expected a Xen in QEMU, where pools end \
         with the machine"
    );
    let real = "backend.guests: emulate-latency on this machine's own memory: expected it with a \
                Xen in QEMU only";
    let latency = json!({ "hypervisor": "qemu", "emulate-latency": "100" });
    assert_eq!(refused(latency, &[&on]), real);
    let latency = json!({ "on-this-dom0": true, "emulate-latency": "100" });
    assert_eq!(refused(latency, &[&on]), real);
    let both = json!({ "hypervisor": "qemu", "on-this-dom0": true });
    assert_eq!(
        refused(both, &[&on]),
        "backend.guests: on-this-dom0 with hypervisor qemu: expected hypervisor xen"
    );
}

#[test]
fn consistent_settings_are_accepted() {
    for settings in [
        json!({}),
        json!({ "hypervisor": "qemu" }),
        json!({ "on-this-dom0": true }),
        json!({ "emulate-latency": "100" }),
    ] {
        let inputs = inputs(settings.clone());
        let one = wanted(&inputs, &[("numa", text("on"))]);
        inputs.check_settings(&[one]).unwrap_or_else(|error| panic!("{settings}: {error}"));
    }
}

#[test]
fn in_this_machines_time_one_boot_runs_at_a_time() {
    let inputs = inputs(json!({}));
    let two = [wanted(&inputs, &[]), wanted(&inputs, &[("guests", Setting::Integer(8))])];
    assert_eq!(inputs.side_by_side(&two).unwrap(), 1);
}

#[test]
fn guests_of_qemu_take_their_own_memory_and_those_of_xen_that_of_their_machine() {
    let qemu = inputs(json!({ "hypervisor": "qemu", "guest-memory-mib": 100 }));
    let few = wanted(&qemu, &[("guests", Setting::Integer(2))]);
    let many = wanted(&qemu, &[("guests", Setting::Integer(7))]);
    assert_eq!(qemu.memory_bytes(&[few, many]).unwrap(), 700 << 20);
    assert_eq!(qemu.memory_bytes(&[]).unwrap(), 0);
    let xen = inputs(json!({}));
    let few = wanted(&xen, &[("guests", Setting::Integer(2))]);
    let many = wanted(&xen, &[("guests", Setting::Integer(16))]);
    let largest = xen.largest_machine(&[few.clone(), many.clone()]).unwrap();
    assert_eq!(largest, xen.largest_machine(std::slice::from_ref(&many)).unwrap());
    assert!(largest > xen.largest_machine(std::slice::from_ref(&few)).unwrap());
    assert_eq!(xen.memory_bytes(&[few, many]).unwrap(), largest);
}

#[test]
fn notices_name_the_limits_of_guest_figures() {
    use numalab_record::study::Notice;
    let notices = |settings: Value, treatment: &[(&str, Setting)]| {
        let inputs = inputs(settings);
        let one = wanted(&inputs, treatment);
        inputs.notices(&[one]).unwrap()
    };
    // Of the 16 guests, 4 fill a node.
    let many = ("guests", Setting::Integer(16));
    let usual = std::slice::from_ref(&many);
    assert_eq!(notices(json!({}), usual), [Notice::EqualCosts, Notice::RestoredGuests]);
    assert_eq!(notices(json!({ "guest-kind": "pvh" }), usual), [Notice::EqualCosts]);
    assert!(
        notices(json!({}), &[("guests", Setting::Integer(4))]).contains(&Notice::MachineOfOneNode)
    );
    let string = [("pinning", text("cpus-as-string")), many.clone()];
    let expected = [Notice::EqualCosts, Notice::RestoredGuests, Notice::CpusAsString];
    assert_eq!(notices(json!({}), &string), expected);
    let emulated = notices(json!({ "emulate-latency": "100" }), &[]);
    assert_eq!(emulated[0], Notice::OwnClocks);
    assert!(!emulated.contains(&Notice::EqualCosts));
}

#[test]
fn a_machine_with_more_memory_than_there_is_is_refused_with_both_figures() {
    assert_eq!(expect_room(6 << 30, 6 << 30), Ok(()));
    let refused = expect_room(6 << 30, 5 << 30).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the machine with the most guests takes 6144 MiB with QEMU, and 5120 MiB are available; \
         free memory, or lower guests, guest-memory-mib or dom0-memory-mib with --set"
    );
    let large = inputs(json!({ "guest-memory-mib": 1 << 20 }));
    let one = wanted(&large, &[]);
    let refused = large.check_host_memory(std::slice::from_ref(&one)).unwrap_err().to_string();
    assert!(refused.starts_with("the machine with the most guests takes 419"), "{refused}");
}
