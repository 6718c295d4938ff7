use super::*;

fn not_started() -> ProfileError {
    let source = io::Error::from_raw_os_error(2);
    ProfileError::NotStarted { program: "./prog".to_owned(), source }
}

fn hindered() -> ProfileError {
    ProfileError::Hindered { source_name: SourceName::Damon, why: Hindrance::NoDamon }
}

#[test]
fn messages_quote_the_request() {
    assert_eq!(ProfileError::NoProcess { process: 77 }.to_string(), "process 77 does not exist");
    assert_eq!(
        ProfileError::Foreign { process: 77 }.to_string(),
        "process 77: the kernel lets only its user, and root with CAP_SYS_PTRACE, record it: run \
         numalab as one of them (in a container: docker run --cap-add SYS_PTRACE)"
    );
    assert_eq!(
        not_started().to_string(),
        "cannot run `./prog`: No such file or directory (os error 2)"
    );
    assert_eq!(
        ProfileError::NotFollowed(io::Error::from_raw_os_error(1)).to_string(),
        "the command cannot be followed: Operation not permitted (os error 1)"
    );
    let message = hindered().to_string();
    assert!(message.ends_with(" cannot be used: NoDamon"), "{message}");
}

#[test]
fn a_wrong_process_id_is_bad_input_a_missing_permission_lacking_and_no_program_not_found() {
    let classes = [
        (ProfileError::NoProcess { process: 1 }, ErrorClass::BadInput),
        (ProfileError::Foreign { process: 1 }, ErrorClass::Lacking),
        (hindered(), ErrorClass::Lacking),
        (not_started(), ErrorClass::NotFound),
        (ProfileError::NotFollowed(io::Error::from_raw_os_error(1)), ErrorClass::Failed),
    ];
    for (error, class) in classes {
        assert_eq!(error.class(), class, "{error}");
    }
}

#[test]
fn a_refused_process_ends_the_search_and_a_hindrance_passes_on_to_the_next_source() {
    let of = |error: PerfError| Refused::from(error);
    assert!(matches!(
        of(PerfError::NoProcess { process: 4 }),
        Refused::Process(ProfileError::NoProcess { process: 4 })
    ));
    assert!(matches!(
        of(PerfError::Foreign { process: 5 }),
        Refused::Process(ProfileError::Foreign { process: 5 })
    ));
    let Refused::Hindrance(why) = of(PerfError::Hindered(Hindrance::NoPmu)) else { panic!() };
    assert_eq!(why, Hindrance::NoPmu);
}
