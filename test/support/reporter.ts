import type { Reporter, TestModule } from "vitest/node";

/** Prints one plain line at the very end, for whoever reads the log by machine: `N passed, N failed`. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state]++;
      // A file that could not be loaded, or whose hook failed, has no failed test to show for it.
      if (!module.ok() && [...module.children.allTests("failed")].length === 0) counts.failed++;
    }
    counts.failed += counts.pending;
    const skipped = counts.skipped > 0 ? `${counts.skipped} skipped\n` : "";
    // After the default reporter's own summary.
    process.on("exit", () => process.stdout.write(`${skipped}${counts.passed} passed, ${counts.failed} failed\n`));
  }
}
