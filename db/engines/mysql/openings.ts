/** When another session with a server may be opened: the answers of the server to those that are being opened decide. */
import { isRefusal } from './errors.ts'

/** Milliseconds after which what is being opened counts as silent. */
const SILENT_AFTER = 1_000

/** Milliseconds for which a log-in shows that the server answers, so that others may begin side by side. */
const ANSWER_LIFETIME = 1_000

/**
 * Milliseconds between the beginnings of log-ins while one is silent. The host's name may lead to another server
 * soon, or to several of which one is silent, so the first ones come soon. But a server that hangs counts
 * each one that ends, and blocks the client's address after a hundred (see LOG_IN_TIMEOUT): of these it counts
 * 17 in ten minutes.
 */
const PAUSES_IF_SILENT = [1, 1, 1.5, 1.5, 3, 6, 12, 24, 48, 60].map((seconds) => seconds * 1_000)

/**
 * The same before the first answer. A process whose start fails after a minute is started again, and breaks its
 * log-ins off, so it has two in a minute.
 */
const PAUSES_AT_START = [SILENT_AFTER, 60_000]

/** The same after log-ins that were refused: a server may lock the account after some. */
const PAUSES_IF_REFUSED = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300].map((seconds) => seconds * 1_000)

/** The same after an opening that failed while other sessions work. */
const PAUSE_IF_FAILED = 100

const at = (pauses: number[], index: number) => pauses[Math.min(index, pauses.length - 1)] as number

/** A session that is being opened. All times are those of performance.now(). */
export interface Opening {
  readonly beganAt: number
  /** When its log-in was accepted. */
  answeredAt: number | undefined
}

export class Openings {
  #all: Opening[] = []
  /** When a log-in was last accepted. Since then: the number of log-ins beside silent ones, and of refused ones. */
  #answeredAt = Number.NEGATIVE_INFINITY // there was none
  #besideSilent = 0
  #refused = 0
  #notBefore = Number.NEGATIVE_INFINITY
  /** Why the latest log-in was refused, until one is accepted. */
  refusal: unknown

  begin(): Opening {
    if (this.#silent.length > 0) this.#besideSilent++
    const opening: Opening = { beganAt: performance.now(), answeredAt: undefined }
    this.#all = [...this.#all, opening]
    return opening
  }

  /** The server has accepted a log-in. */
  answered(opening: Opening): void {
    opening.answeredAt = this.#answeredAt = performance.now()
    this.#besideSilent = 0
    this.#refused = 0
    this.refusal = undefined
  }

  /** An opening has ended: its session is open, or it failed. */
  ended(opening: Opening): void {
    this.#all = this.#all.filter((other) => other !== opening)
  }

  /** Lets others wait after a failure: long after a refusal, and a moment `besideOthers` that work. */
  failed(error: unknown, besideOthers: boolean): void {
    const isRefused = isRefusal(error)
    if (isRefused) this.refusal = error
    const pause = isRefused
      ? at(PAUSES_IF_REFUSED, this.#refused++)
      : besideOthers
        ? PAUSE_IF_FAILED
        : 0
    this.#notBefore = Math.max(this.#notBefore, performance.now() + pause)
  }

  get isEmpty(): boolean {
    return this.#all.length === 0
  }

  /** The number of those that may end soon. */
  get coming(): number {
    const since = performance.now() - SILENT_AFTER
    return this.#all.filter(({ beganAt, answeredAt = beganAt }) => answeredAt > since).length
  }

  /** The number of those that count among the connections: a server that is silent may be another one. */
  get count(): number {
    return this.#all.length - this.#silent.length
  }

  /** When another one may begin. */
  get nextAt(): number {
    const latest = this.#unanswered.at(-1)
    const sinceAnswer = performance.now() - this.#answeredAt
    const isAnswering = sinceAnswer < ANSWER_LIFETIME && this.#silent.length === 0
    if (!latest || isAnswering) return this.#notBefore
    const pauses = sinceAnswer < Number.POSITIVE_INFINITY ? PAUSES_IF_SILENT : PAUSES_AT_START
    return Math.max(this.#notBefore, latest.beganAt + at(pauses, this.#besideSilent))
  }

  get #unanswered(): Opening[] {
    return this.#all.filter(({ answeredAt }) => answeredAt === undefined)
  }

  get #silent(): Opening[] {
    const since = performance.now() - SILENT_AFTER
    return this.#unanswered.filter(({ beganAt }) => beganAt <= since)
  }
}
