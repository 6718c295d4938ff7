pub fn compare() {}
