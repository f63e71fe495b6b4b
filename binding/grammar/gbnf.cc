#include "grammar/gbnf.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/analysis.h"
#include "grammar/char_class.h"
#include "grammar/literals.h"

namespace tokenloop::grammar {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || IsDigit(c); }

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      out += static_cast<char>(0xE0 | (code >> 12));
    } else {
      out += static_cast<char>(0xF0 | (code >> 18));
      out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    }
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
  }
  out += static_cast<char>(0x80 | (code & 0x3F));
}

// A piece of the graph: entered at `entry`, left through `exit`, a kJump whose next is not set yet.
struct Fragment {
  NodeId entry = 0;
  NodeId exit = 0;
};

class Parser {
 public:
  Parser(std::string_view text, const GbnfLimits& limits) : text_(text), limits_(limits) {}

  GbnfResult Run() {
    GbnfResult result;
    if (Parse() && Link()) {
      result.program = std::make_shared<const Program>(std::move(program_));
    } else {
      result.error = std::move(error_);
      Locate(error_at_, result.error);
    }
    return result;
  }

 private:
  static constexpr size_t kUndefined = SIZE_MAX;

  struct Rule {
    std::string_view name;
    size_t first_use = kUndefined;
    size_t defined = kUndefined;
    NodeId entry = 0;
  };

  // Alternatives that are being read: a whole rule or a group.
  struct Group {
    size_t opened = 0;
    std::vector<NodeId> alternatives;
    NodeId exit = 0;
    NodeId tail = 0;               // the open end of the sequence so far
    std::optional<Fragment> last;  // what a repetition sign would apply to
    NodeId before_last = 0;        // the jump in front of it
  };

  // --- the text

  bool end() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  bool Fail(size_t at, std::string message) {
    error_.message = std::move(message);
    error_at_ = at;
    return false;
  }

  void Locate(size_t at, GbnfError& error) const {
    error.line = 1;
    error.column = 1;
    for (size_t i = 0; i < at && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++error.line;
        error.column = 1;
      } else if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80) {
        ++error.column;
      }
    }
  }

  void Space(bool newlines) {
    while (!end()) {
      const char c = text_[at_];
      if (c == '#') {
        while (!end() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        break;
      }
    }
  }

  bool Hex(size_t start, int digits, uint32_t& code) {
    code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = Peek();
      const char lower = static_cast<char>(c | 0x20);
      uint32_t digit;
      if (IsDigit(c)) {
        digit = static_cast<uint32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        digit = static_cast<uint32_t>(lower - 'a' + 10);
      } else {
        return Fail(start, "this escape needs " + std::to_string(digits) + " hexadecimal digits");
      }
      code = (code << 4) | digit;
    }
    return code <= 0x10FFFF || Fail(start, "there is no character above U+10FFFF");
  }

  // One character of a literal or a class, `what`, that was opened at `opened`.
  bool Char(size_t opened, const char* what, uint32_t& code) {
    if (end()) return Fail(opened, std::string("this ") + what + " is not closed");
    const size_t start = at_;
    const auto first = static_cast<unsigned char>(text_[at_++]);
    if (first != '\\') return Decode(start, first, code);
    if (end()) return Fail(opened, std::string("this ") + what + " is not closed");
    const char escape = text_[at_++];
    switch (escape) {
      case 'x':
        return Hex(start, 2, code);
      case 'u':
        return Hex(start, 4, code);
      case 'U':
        return Hex(start, 8, code);
      case 't':
        code = '\t';
        return true;
      case 'r':
        code = '\r';
        return true;
      case 'n':
        code = '\n';
        return true;
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
        code = static_cast<unsigned char>(escape);
        return true;
      default:
        return Fail(start, "unknown escape");
    }
  }

  bool Decode(size_t start, unsigned char first, uint32_t& code) {
    code = first;
    if (first < 0x80) return true;
    const int rest = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    code = first & (0x3FU >> rest);
    bool valid = first >= 0xC2 && first <= 0xF4;
    for (int i = 0; valid && i < rest; ++i, ++at_) {
      const auto byte = static_cast<unsigned char>(Peek());
      valid = !end() && (byte & 0xC0) == 0x80;
      code = (code << 6) | (byte & 0x3F);
    }
    constexpr uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    valid = valid && code >= least[rest] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    return valid || Fail(start, "the text is not UTF-8");
  }

  // Digits, saturating above every limit.
  bool Number(uint64_t& value) {
    if (!IsDigit(Peek())) return Fail(at_, "a number is expected here");
    value = 0;
    for (; IsDigit(Peek()); ++at_) {
      if (value < (uint64_t{1} << 40)) value = value * 10 + static_cast<uint64_t>(Peek() - '0');
    }
    return true;
  }

  // --- the graph

  NodeId Add(Node node) {
    program_.nodes.push_back(node);
    return static_cast<NodeId>(program_.nodes.size() - 1);
  }
  NodeId AddJump() { return Add({NodeKind::kJump}); }
  void Link(NodeId jump, NodeId next) { program_.nodes[jump].next = next; }

  NodeId AddSplit(const std::vector<NodeId>& targets) {
    const auto first = static_cast<uint32_t>(program_.targets.size());
    program_.targets.insert(program_.targets.end(), targets.begin(), targets.end());
    return Add({NodeKind::kSplit, first, static_cast<uint32_t>(program_.targets.size())});
  }

  void OpenGroup() {
    Group group;
    group.opened = at_;
    group.exit = AddJump();
    groups_.push_back(std::move(group));
    BeginSequence();
  }

  void BeginSequence() {
    Group& group = groups_.back();
    group.tail = AddJump();
    group.alternatives.push_back(group.tail);
    group.last.reset();
  }

  void EndSequence() { Link(groups_.back().tail, groups_.back().exit); }

  Fragment CloseGroup() {
    EndSequence();
    Group& group = groups_.back();
    const NodeId entry = group.alternatives.size() == 1 ? group.alternatives[0] : AddSplit(group.alternatives);
    const Fragment fragment{entry, group.exit};
    groups_.pop_back();
    return fragment;
  }

  void Append(Fragment item) {
    Group& group = groups_.back();
    group.before_last = group.tail;
    Link(group.tail, item.entry);
    group.last = item;
    group.tail = item.exit;
  }

  bool Repeat(size_t at, uint64_t min, uint64_t max, bool bounded) {
    Group& group = groups_.back();
    if (!group.last) return Fail(at, "nothing stands before this repetition");
    const uint64_t limit = limits_.repetitions;
    if (min > limit || (bounded && max > limit)) {
      return Fail(at, "a repetition may count to " + std::to_string(limit) + " at most");
    }
    if (bounded && min > max) return Fail(at, "this repetition's minimum is above its maximum");
    Fragment item = *group.last;
    const NodeId exit = AddJump();
    if (bounded && max == 0) {
      item.entry = exit;
    } else if (bounded && max == 1) {
      Link(item.exit, exit);
      if (min == 0) item.entry = AddSplit({item.entry, exit});
    } else if (!bounded && min <= 1) {
      const NodeId split = AddSplit({item.entry, exit});
      Link(item.exit, split);
      if (min == 0) item.entry = split;
    } else {
      Link(item.exit, Program::kReturnNode);
      item.entry = Add({NodeKind::kLoop, item.entry, 0, exit, static_cast<uint32_t>(min),
                        bounded ? static_cast<uint32_t>(max) : Node::kUnbounded});
    }
    item.exit = exit;
    Link(group.before_last, item.entry);
    group.last = item;
    group.tail = exit;
    return true;
  }

  size_t RuleIndex(std::string_view name) {
    const auto [found, added] = names_.emplace(name, rules_.size());
    if (added) rules_.push_back({name});
    return found->second;
  }

  // --- the notation

  bool Parse() {
    if (text_.size() > limits_.bytes) {
      return Fail(0, "a grammar may have " + std::to_string(limits_.bytes) + " bytes at most");
    }
    program_.nodes.push_back({NodeKind::kReturn});
    Space(true);
    while (!end()) {
      if (!ParseRule()) return false;
      Space(true);
    }
    return true;
  }

  std::string_view Name() {
    const size_t start = at_;
    while (IsWord(Peek())) ++at_;
    return text_.substr(start, at_ - start);
  }

  bool ParseRule() {
    const size_t start = at_;
    const std::string_view name = Name();
    if (name.empty()) return Fail(start, "a rule's name is expected here");
    const size_t index = RuleIndex(name);
    if (rules_.size() > limits_.rules) return TooManyRules(start);
    if (rules_[index].defined != kUndefined) {
      return Fail(start, "the rule \"" + std::string(name) + "\" is defined twice");
    }
    rules_[index].defined = start;
    Space(false);
    if (text_.substr(at_, 3) != "::=") return Fail(at_, "\"::=\" is expected here");
    at_ += 3;
    Space(true);
    OpenGroup();
    if (!ParseAlternatives()) return false;
    const Fragment whole = CloseGroup();
    Link(whole.exit, Program::kReturnNode);
    rules_[index].entry = whole.entry;
    if (!end() && Peek() != '\n' && Peek() != '\r') {
      return Fail(at_, Peek() == ')' ? "this parenthesis was never opened" : "this cannot stand here");
    }
    return true;
  }

  bool TooManyRules(size_t at) {
    return Fail(at, "a grammar may have " + std::to_string(limits_.rules) + " rules at most");
  }

  // Up to the end of the rule. Groups are a stack, not a recursion.
  bool ParseAlternatives() {
    while (true) {
      Space(groups_.size() > 1);
      if (program_.nodes.size() > limits_.nodes) return Fail(at_, "the grammar is too large");
      const size_t start = at_;
      const char c = Peek();
      bool good = true;
      if (end()) {
        break;
      } else if (c == '|') {
        ++at_;
        Space(true);
        EndSequence();
        BeginSequence();
      } else if (c == '(') {
        if (groups_.size() > limits_.depth) {
          return Fail(start, "groups may be nested " + std::to_string(limits_.depth) + " deep at most");
        }
        OpenGroup();
        ++at_;
      } else if (c == ')') {
        if (groups_.size() == 1) return true;
        ++at_;
        Append(CloseGroup());
      } else if (c == '"') {
        good = Literal();
      } else if (c == '[') {
        good = Class();
      } else if (c == '.') {
        ++at_;
        AppendClass(NormaliseClass({{0, 0x10FFFF}}, false));
      } else if (c == '<' || c == '!') {
        good = Token();
      } else if (IsWord(c)) {
        good = Reference();
      } else if (c == '*' || c == '+' || c == '?') {
        ++at_;
        good = Repeat(start, c == '+' ? 1 : 0, 1, c == '?');
      } else if (c == '{') {
        good = Count();
      } else if (groups_.size() == 1) {
        return true;
      } else {
        return Fail(at_, "this cannot stand here");
      }
      if (!good) return false;
    }
    return groups_.size() == 1 || Fail(groups_.back().opened, "this parenthesis is not closed");
  }

  bool Literal() {
    const size_t opened = at_++;
    std::string bytes;
    while (Peek() != '"' || end()) {
      const size_t start = at_;
      uint32_t code = 0;
      if (!Char(opened, "literal", code)) return false;
      if (code >= 0xD800 && code <= 0xDFFF) return Fail(start, "a surrogate is not a character");
      AppendUtf8(code, bytes);
    }
    ++at_;
    const NodeId exit = AddJump();
    NodeId entry = exit;
    for (size_t i = bytes.size(); i-- > 0;) {
      const auto byte = static_cast<uint8_t>(bytes[i]);
      const auto edge = static_cast<uint32_t>(program_.edges.size());
      program_.edges.push_back({byte, byte, entry});
      entry = Add({NodeKind::kMatch, edge, edge + 1});
    }
    Append({entry, exit});
    return true;
  }

  bool Class() {
    const size_t opened = at_++;
    const bool negated = Peek() == '^';
    if (negated) ++at_;
    std::vector<CodePointRange> ranges;
    while (Peek() != ']' || end()) {
      const size_t start = at_;
      CodePointRange range;
      if (!Char(opened, "character class", range.low)) return false;
      range.high = range.low;
      if (Peek() == '-' && Peek(1) != ']') {
        ++at_;
        if (!Char(opened, "character class", range.high)) return false;
        if (range.high < range.low) return Fail(start, "this range ends before it begins");
      }
      ranges.push_back(range);
    }
    ++at_;
    ranges = NormaliseClass(std::move(ranges), negated);
    if (ranges.empty()) return Fail(opened, "no character is in this class");
    AppendClass(ranges);
    return true;
  }

  void AppendClass(const std::vector<CodePointRange>& ranges) {
    const NodeId exit = AddJump();
    Append({AddClass(program_, ranges, exit), exit});
  }

  bool Token() {
    const size_t start = at_;
    const bool negated = Peek() == '!';
    if (negated) ++at_;
    if (Peek() != '<') return Fail(at_, "\"<\" is expected here");
    ++at_;
    if (Peek() != '[') return Fail(start, "a token can only be named by its id, as in <[42]>");
    ++at_;
    uint64_t id = 0;
    if (!Number(id)) return false;
    if (id > INT32_MAX) return Fail(start, "no token has this id");
    if (Peek() != ']' || Peek(1) != '>') return Fail(at_, "\"]>\" is expected here");
    at_ += 2;
    const NodeId exit = AddJump();
    const NodeKind kind = negated ? NodeKind::kNotToken : NodeKind::kToken;
    Append({Add({kind, static_cast<uint32_t>(id), 0, exit}), exit});
    return true;
  }

  bool Reference() {
    const size_t start = at_;
    const size_t index = RuleIndex(Name());
    if (rules_.size() > limits_.rules) return TooManyRules(start);
    if (rules_[index].first_use == kUndefined) rules_[index].first_use = start;
    const NodeId exit = AddJump();
    Append({Add({NodeKind::kCall, static_cast<uint32_t>(index), 0, exit}), exit});
    return true;
  }

  bool Count() {
    const size_t start = at_++;
    const bool newlines = groups_.size() > 1;
    uint64_t min = 0;
    Space(newlines);
    if (!Number(min)) return false;
    Space(newlines);
    uint64_t max = min;
    bool bounded = true;
    if (Peek() == ',') {
      ++at_;
      Space(newlines);
      bounded = IsDigit(Peek());
      if (bounded && !Number(max)) return false;
      Space(newlines);
    }
    if (Peek() != '}') return Fail(at_, "\"}\" is expected here");
    ++at_;
    return Repeat(start, min, max, bounded);
  }

  // --- the whole

  bool Link() {
    const auto root = names_.find("root");
    if (root == names_.end()) return Fail(0, "the rule \"root\" is not defined");
    std::vector<NodeId> entries;
    for (const Rule& rule : rules_) {
      if (rule.defined == kUndefined) {
        return Fail(rule.first_use, "the rule \"" + std::string(rule.name) + "\" is not defined");
      }
      entries.push_back(rule.entry);
    }
    for (Node& node : program_.nodes) {
      if (node.kind == NodeKind::kCall) node.a = entries[node.a];
    }
    RemoveJumps(program_, entries);
    program_.root = entries[root->second];
    if (const auto rule = FindLeftRecursion(program_, entries)) {
      return Fail(rules_[*rule].defined, "the rule \"" + std::string(rules_[*rule].name) +
                                             "\" can begin with itself: left recursion never ends");
    }
    MergeLiterals(program_);
    program_.nodes.shrink_to_fit();
    program_.edges.shrink_to_fit();
    program_.targets.shrink_to_fit();
    return true;
  }

  std::string_view text_;
  const GbnfLimits& limits_;
  size_t at_ = 0;
  Program program_;
  std::vector<Group> groups_;
  std::vector<Rule> rules_;
  std::unordered_map<std::string_view, size_t> names_;
  GbnfError error_;
  size_t error_at_ = 0;
};

}  // namespace

GbnfResult ParseGbnf(std::string_view text, const GbnfLimits& limits) { return Parser(text, limits).Run(); }

}  // namespace tokenloop::grammar
