/** The report's style sheet: follows the reader's choice of light or dark, and prints. */
export const style = `
:root {
  color-scheme: light dark;
  --page: #fbfbf9; --card: #fff; --ink: #1d2023; --soft: #62696f; --line: #e4e4df;
  --bar: #3f7f8c; --area: #3f7f8c2e; --mark: #b4552d; --wait: #c9ccc9; --cancelled: #b99a4b; --failed: #b3382c; --note: #f5efe0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16181a; --card: #1d2022; --ink: #e6e6e2; --soft: #979da1; --line: #2f3335;
    --bar: #69aebb; --area: #69aebb30; --mark: #e08a5f; --wait: #474c4e; --cancelled: #c9ab62; --failed: #e0685a; --note: #2a271f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 26px; font-weight: 600; letter-spacing: -0.01em; margin: 0; text-wrap: balance; }
h2 { font-size: 15px; font-weight: 600; margin: 40px 0 12px; }
.sub { color: var(--soft); margin: 4px 0 28px; overflow-wrap: anywhere; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 1px; background: var(--line);
  border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.numbers div { background: var(--card); padding: 14px 16px; }
.numbers dt { color: var(--soft); font-size: 13px; }
.numbers dd { margin: 2px 0 0; font-size: 21px; font-variant-numeric: tabular-nums; letter-spacing: -0.01em; }
.numbers dd small { font-size: 13px; color: var(--soft); letter-spacing: 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 16px; }
figure { margin: 0 0 16px; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px 8px; min-width: 0; }
.plots figure { margin: 0; }
figcaption { font-weight: 600; font-size: 14px; }
figcaption span { display: block; color: var(--soft); font-weight: 400; font-size: 13px; }
svg { display: block; width: 100%; height: auto; font: 11px system-ui, sans-serif; }
.bar, .answer { fill: var(--bar); } .wait { fill: var(--wait); } .area { fill: var(--area); }
.cancelled { fill: var(--cancelled); } .failed { fill: var(--failed); }
.line { fill: none; stroke: var(--bar); stroke-width: 1.5; }
.axis, .grid { stroke: var(--line); } .tick { fill: var(--soft); }
.mark { stroke: var(--mark); stroke-width: 1; } .mark-text { fill: var(--mark); }
.key { display: flex; flex-wrap: wrap; gap: 6px 18px; color: var(--soft); font-size: 13px; margin: 0 0 12px; }
.key i { display: inline-block; width: 12px; height: 8px; border-radius: 2px; margin-right: 6px; background: currentColor; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { text-align: right; padding: 6px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); font-weight: 400; }
tbody th { font-weight: 400; }
.remarks { background: var(--note); border-radius: 10px; padding: 12px 16px 12px 34px; margin: 24px 0 0; }
.facts { columns: 2 320px; column-gap: 40px; margin: 0; font-size: 14px; }
.facts div { break-inside: avoid; display: flex; gap: 12px; padding: 4px 0; border-bottom: 1px solid var(--line); }
.facts dt { color: var(--soft); flex: 0 0 150px; } .facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
@media print { body { background: #fff; } figure { break-inside: avoid; } }
`;
