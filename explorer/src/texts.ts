/** All texts that the page shows, in English. */
import { groupDigits } from './amounts.ts'

export const texts = {
  title: 'Commission explorer',
  skip: 'Skip to the content',
  views: {
    overview: 'Overview',
    payouts: 'Payouts',
    payout: 'Payout',
    history: 'History',
    compare: 'Two payouts compared',
    payroll: 'Payroll record',
    changes: 'Changes',
    corrections: 'Corrections',
    unknown: 'There is no such page',
  },
  unknownPage: 'This address is of no page of the explorer. Check it, or go to the',
  reading: 'Reading…',
  tryAgain: 'Try again',
  more: 'Show more',
  none: 'None.',

  key: {
    label: 'API key',
    open: 'Open',
    another: 'Use another key',
    // On a narrow screen.
    other: 'Other key',
    hint: 'The key stays in the memory of this page: it is not stored, and the address of the page never has it. Reload or close the page to forget it.',
    intro: 'Reads what is owed, why, what it was before, and what was paid. The key says whose data you see.',
  },

  moment: {
    label: 'As of',
    hint: 'The time of publishing: when the service recorded something, not the date of pay. An instant such as 2026-02-01T08:30:00Z, a date (its begin in UTC), or the id of a change.',
    wrong: 'Expected an instant such as 2026-02-01T08:30:00Z, a date, or the id of a change.',
    show: 'Show',
    now: 'Back to now',
    isNow: 'Now',
    asked: (moment: string) => `As of ${moment}.`,
    shown: (moment: string) =>
      `As of ${moment}: everything here is as it was published then. It counts when the service recorded something, not which period it is for.`,
    refused: (moment: string) => `As of ${moment}: the service refuses this moment, and nothing of it is shown.`,
    // With a space that does not break.
    asOfThis: 'This\u00a0change',
  },

  find: {
    label: 'Find',
    example: 'An id: payout_…',
    go: 'Go',
    hint: 'Expected the id of a payout, rep, period, deal or payroll record, or of a change, such as rep_7.2.',
  },

  state: {
    label: 'State of the data',
    upTo: 'Includes everything published up to',
    live: 'live',
    again: 'The page lost its connection for changes, and tries again.',
    notLive: 'This key may not follow changes, so the page shows new ones only when it reads again, each minute.',
    tooFar:
      'There are more changes than this key can look through for the last one, so the page shows new ones only when it reads again, each minute. With the permission totals:read it would find it at once.',
    unanswered: 'The service does not answer. The page asks again.',
    busy: (status: number, seconds: string | undefined) =>
      status === 429
        ? `Too many requests (429). The page asks again${inSeconds(seconds)}: wait.`
        : `The service cannot answer now (${status}). The page asks again${inSeconds(seconds)}: wait.`,
  },

  refused: {
    unauthorized: 'This key is unknown, revoked or expired. Check it, or ask the operator for another one.',
    forbidden: (what: string, permission: string | undefined) =>
      `This key may not read ${what}${permission === undefined ? '' : `: it lacks the permission ${permission}`}. Ask the operator for a key that may. Other parts of the page may be open to it.`,
    names: (lists: readonly string[]) =>
      `This key may not read ${lists.join(' and ')}: their ids stand in place of their names.`,
    noNames: (why: string) => `Ids stand in place of names that could not be read. ${why}`,
    notFound:
      'There is no such record that this key can read, or there was none at this moment. Check the id and the moment.',
    moment:
      'Nothing can be shown as of this moment. It may not be over yet, or no change of your organization has this id. Choose another moment, or go back to now.',
    invalid:
      'The service cannot answer what is asked for here. Correct what you typed, the filter or the address of the page.',
    inItsWords: (message: string) => `The service says: ${message}`,
    rateLimited: 'This key has sent too many requests. Wait a minute, and try again.',
    unavailable: 'The service cannot read the records now. Nothing is lost: wait a little, and try again.',
    connection: 'The service does not answer. Check the connection, and try again.',
    unknown: (status: number) =>
      `The service answered in a way that this page does not know (${status}). Try again, or tell the operator.`,
    defect: 'This page has met an error that it does not know. Reload it, or tell the operator.',
    request: (id: string) => `For the operator: request ${id}`,
  },

  sealed: {
    erased: 'erased',
    erasedHint: 'This person was forgotten: the text is lost for ever.',
    unreadable: 'unreadable',
    unreadableHint: 'The publisher sealed this text wrongly: nobody can read it.',
  },

  words: {
    rep: 'Rep',
    period: 'Period',
    currency: 'Currency',
    owed: 'Owed',
    paid: 'Paid',
    open: 'Open',
    all: 'All',
    amount: 'Amount',
    earned: 'Earned',
    deal: 'Deal',
    ofDeal: 'Of the deal',
    status: 'Status',
    kind: 'Kind',
    total: 'Total',
    payout: 'Payout',
  },

  overview: {
    picture: (currency: string) => `Owed and paid by period in ${currency}`,
    pictureOf: (shown: number, of: number, isOrdered: boolean) =>
      shown === of ? `All of ${count(of, 'period')}` : `${isOrdered ? 'The latest ' : ''}${shown} of ${of} periods`,
    allPeriods: (count: number) => `Show all ${count} periods`,
    fewPeriods: (count: number, isOrdered: boolean) => `Show ${isOrdered ? 'the latest ' : ''}${count} periods`,
    nothing: 'Nothing is owed and nothing was paid.',
    counts: (owed: number, paid: number) => `${count(owed, 'payout')}, ${count(paid, 'payroll record')}`,
    explained: 'Open is owed less paid. A minus sign means that more was paid than is owed.',
    totalOf: (currency: string) => `All periods in ${currency}`,
    latest: 'Changes since this page was opened',
    corrections: 'Corrected lately',
    correctionsHint:
      'The latest payouts that replaced another one, five at most. The difference is added to what was owed.',
    noCorrections: 'No payout was replaced.',
    allCorrections: 'All corrections, since a date',
    noneFound: (changes: number) => `None of the last ${groupDigits(String(changes))} changes replaced a payout.`,
    someFound: (changes: number) =>
      `The payouts that replaced another one, of the last ${groupDigits(String(changes))} changes. Earlier ones are not shown.`,
  },

  payouts: {
    title: 'Current payouts',
    titleOf: (rep: string | undefined, period: string | undefined, deal: string | undefined) =>
      `Current payouts${rep === undefined ? '' : ` of ${rep}`}${period === undefined ? '' : ` for ${period}`}${
        deal === undefined ? '' : ` with a line of ${deal}`
      }`,
    totalsOfRep: 'Owed, paid and open in all periods',
    totalsOfRepIn: (period: string) => `Owed, paid and open in ${period}`,
    sumsOfDeal: 'The sum of the lines of this deal',
    dealHint: 'In current payouts. Paid and open, below, are of each whole payout: nothing is paid for a deal alone.',
    allLines: 'All lines',
    noLines: 'No current payout has a line of it.',
    filter: 'Filter',
    anyRep: 'All reps',
    anyPeriod: 'All periods',
    anyDeal: 'The id of a deal',
    wrongDeal: 'Expected the id of a deal, such as deal_4Kd9.',
    explain: 'Explain',
    history: 'History',
    compare: 'Compare',
    shown: (count: number, hasMore: boolean) => `${count} shown${hasMore ? ', and there are more.' : ': all.'}`,
    openOnly: 'Only payouts with something open or overpaid',
    openOnlyOff: 'Payouts with nothing open are shown, too: the page does not know what was paid.',
    openShown: (open: number, of: number, hasMore: boolean) =>
      `${open} of the ${hasMore ? `first ${of} payouts. There are more to look through.` : `${of} payouts: all were looked through.`}`,
    noneOpen: 'Of none of these payouts anything is open.',
    withoutPayout: 'Paid without a payout',
    withoutPayoutHint: 'Nothing is owed for it: the rep has no current payout in this currency for the period.',
    withoutPayoutUnknown: (records: number) =>
      `There are more than ${groupDigits(String(records))} payroll records: the page does not show what was paid without a payout. Choose a rep or a period.`,
    periodOrder: 'The latest period first.',
    publishedOrder: 'In the order in which they were published.',
    tooManyPaid: (payouts: number, records: number) =>
      `These are more than ${payouts} payouts, with more than ${groupDigits(String(records))} payroll records: the page does not show what was paid and is open. Choose a rep.`,
    none: 'No payout matches.',
    noneOf: 'No payout matches: nothing is owed, or there is no such rep, period or deal.',
    nothingOf: 'Nothing is owed and nothing was paid, or there is no such rep or period.',
  },

  payout: {
    title: (rep: string, period: string) => `${rep}, ${period}`,
    owed: 'Owed',
    owedThen: 'Owed until it was replaced',
    earnedAmount: 'Earned in this period',
    calculated: 'Calculated',
    recorded: 'Recorded',
    current: 'Current',
    replacedBy: 'Replaced by',
    replaces: 'Replaces',
    isReplaced: 'This payout was replaced, and is no longer owed. Its replacement is',
    lines: 'The lines that add up to what is owed',
    line: 'Line',
    category: { earned: 'earned', recovered: 'recovered', adjusted: 'adjusted' },
    sum: 'Sum so far',
    picture: 'Picture',
    noLines: 'This payout has no lines.',
    linesShown: (shown: number, of: number) => `${shown} of ${of} lines`,
    trace: 'How it was calculated',
    step: 'Step',
    strategy: (name: string, version: string) => `${name}, version ${version}`,
    inputs: 'Inputs',
    output: 'Result',
    traceHint:
      'The steps in the order in which they were taken. The lines above add up to what is owed; the steps do not.',
    notCalculated:
      'This payout was recorded, and nothing was calculated here. That it has no steps does not mean that no deal contributed.',
    noSteps: 'The calculation has no steps.',
    payroll: 'Payments to this rep for this period',
    noPayroll: 'Nothing was paid yet.',
    destination: 'Destination',
    void: 'reverses',
    paidSum: (currency: string) => `Paid in ${currency}`,
    openSum: (currency: string) => `Open in ${currency}`,
    history: 'All payouts of this rep and period',
    compared: 'Compare',
    periodBefore: 'With the period before',
    wasThen: 'This payout was not there yet. At this moment, the payout of its rep and period was',
    noneThen: 'This payout was not there yet. At this moment, its rep and period had no payout.',
    dealOnly: (deal: string) => `Lines and steps of ${deal}`,
  },

  history: {
    title: (rep: string, period: string) => `History of ${rep}, ${period}`,
    picture: 'The amount owed after each payout, the oldest first',
    mixed: 'The currency changed: bars of different currencies do not compare.',
    first: 'First payout',
    replaced: (id: string) => `Replaced ${id}`,
    compare: 'Compare two payouts',
    byKind: 'Difference by kind',
    from: 'Before',
    to: 'After',
    added: 'added',
    removed: 'removed',
    changed: 'changed',
    before: 'Before',
    after: 'After',
    difference: 'Difference',
    change: 'Change',
    same: 'Both have the same lines.',
    // In one line.
    asThen: 'as\u00a0it\u00a0was\u00a0then',
    otherCurrency: (from: string, to: string) =>
      `The currency changed from ${from} to ${to}: no difference can be given between two currencies.`,
    inCurrency: (head: string, currency: string) => `${head}, ${currency}`,
    notInHistory: (id: string) =>
      `${id} is not in this history: it is of another rep or period, or it was not there at this moment. Choose two payouts of this history.`,
  },

  compare: {
    title: (rep: string, to: string, from: string | undefined) =>
      `${rep}: ${to} compared${from === undefined ? '' : ` with ${from}`}`,
    onlyIn: (period: string) => `only in ${period}`,
    inBoth: 'in both',
    which: (from: string, to: string) => `Each difference is ${to} less ${from}.`,
    explain: (period: string) => `Explain ${period}`,
    choose: 'Choose a payout',
    ofOtherRep: (id: string) =>
      `${id} is a payout of another rep: the payouts of two people are not compared. Choose a payout of this rep.`,
    beforeUnknown: 'The periods of this rep are not all known, so the period before is not known. Choose a payout.',
    noneBefore: 'This rep has no payout for an earlier period of the same kind. Choose one to compare with.',
  },

  payroll: {
    reversed: 'Reversed',
    reverses: 'Reverses',
    reversedBy: 'Reversed by',
    paidThen: 'Paid until it was reversed',
    reversalUnknown: 'It is not known whether this payment was reversed.',
    noPayout: 'It names no payout: those of the rep and period',
  },

  corrections: {
    since: 'Published since',
    example: '2026-02-01',
    sum: 'Added to what was owed',
    explained: 'The sum of all corrections below, without those between two currencies.',
    shown: (found: number, looked: number, hasMore: boolean) =>
      `${count(found, 'correction')} among ${hasMore ? `the last ${count(looked, 'change')}. There are more to look through.` : `${count(looked, 'change')}: all were looked through.`}`,
  },

  changes: {
    title: 'Changes',
    latest: 'Since this page was opened',
    waiting: 'No change yet. The page shows each one as it comes.',
    all: 'All changes',
    latestFirst: 'The latest first.',
    oldestFirst: 'The oldest first: this key may not read totals, which say how many changes there are.',
    when: 'Published',
    what: 'What',
    kind: { reps: 'Rep', periods: 'Period', payouts: 'Payout', payroll_files: 'Payroll record' },
    recalculated: 'Payout, replaces',
    void: 'Void of',
    ofPayout: 'of',
    noDifferences: (why: string) => `There are no differences to the payouts before. ${why}`,
    notNow: 'A page as of a moment does not change. Go back to now to see changes as they come.',
  },
} as const

const count = (number: number, what: string): string =>
  `${groupDigits(String(number))} ${what}${number === 1 ? '' : 's'}`
const inSeconds = (seconds: string | undefined): string => (seconds === undefined ? ' soon' : ` in ${seconds} s`)
