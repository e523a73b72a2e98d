//! The tool as the tests run it: the program of `candle-profiler` itself is not built with a package that depends on it.

fn main() -> std::process::ExitCode {
    candle_profiler::cli::main()
}
