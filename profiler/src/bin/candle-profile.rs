//! Reads the traces of candle-profiler: see `candle-profile --help`.

fn main() -> std::process::ExitCode {
    candle_profiler::cli::main()
}
