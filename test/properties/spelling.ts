/** Equivalent spellings of a value, in JSON and in a URL. */
import fc from 'fast-check'

/** Returns integers from 0 to `count` − 1, the same sequence for each spelling. */
export type Choose = (count: number) => number

/** Spellings: a sequence of choices. */
export const spelling: fc.Arbitrary<number[]> = fc.array(fc.nat(1_000), {
  minLength: 1,
  maxLength: 16,
})

/** Repeats the choices of a spelling. */
export function chooser(choices: number[]): Choose {
  let index = 0
  return (count) => (choices[index++ % choices.length] ?? 0) % count
}

/** Writes a value as JSON, with all digits of bigints and without undefined fields. */
export function spelledJson(value: unknown, choose: Choose): string {
  const space = () => ['', '', ' ', '\n\t'][choose(4)] ?? ''
  const write = (item: unknown): string => {
    if (typeof item === 'string') return spelledString(item, choose)
    if (typeof item === 'bigint' || Number.isInteger(item))
      return spelledInteger(item as number, choose) // checked in the line before
    if (Array.isArray(item)) return `[${item.map((one) => space() + write(one) + space())}]`
    if (typeof item !== 'object' || item === null) return JSON.stringify(item)
    const fields = Object.entries(item).filter(([, field]) => field !== undefined)
    return `{${fields.map(([key, field]) => {
      const one = `${space()}${spelledString(key, choose)}${space()}:${space()}${write(field)}`
      // The last one of two equal names is used.
      return choose(8) === 0 ? `${JSON.stringify(key)}:[0,"x"],${one}` : one
    })}${space()}}`
  }
  const byteOrderMark = choose(8) === 0 ? '\ufeff' : ''
  return byteOrderMark + space() + write(value) + space()
}

function spelledString(text: string, choose: Choose): string {
  const plain = JSON.stringify(text)
  if (choose(3) > 0) return plain
  const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index))
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`
}

function spelledInteger(value: number | bigint, choose: Choose): string {
  const digits = Object.is(value, -0) ? '-0' : String(value)
  const shifted = value ? `${digits}000e-3` : `${digits}e-3` // JSON has no leading zeros
  const forms = [digits, digits, digits, `${digits}.0`, `${digits}e0`, `${digits}.00E+0`, shifted]
  return forms[choose(forms.length)] ?? digits
}

/** Writes an integer for a URL, where leading zeros are allowed. */
export function spelledDigits(value: bigint, choose: Choose): string {
  const zeros = ['', '', '0', '000'][choose(4)] ?? ''
  const sign = value < 0n || (value === 0n && choose(2) === 0) ? '-' : ''
  return `${sign}${zeros}${value < 0n ? -value : value}`
}

/** Percent-encodes text for a URL: the required bytes, or every byte. */
export function spelledText(text: string, choose: Choose): string {
  if (choose(2) === 0) return encodeURIComponent(text)
  const escapes = [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
  return choose(2) === 0 ? escapes.join('') : escapes.join('').toUpperCase()
}

/** Writes a query, in which a space may be a plus sign. */
export function spelledQuery(parameters: [name: string, text: string][], choose: Choose): string {
  const write = (text: string) =>
    choose(3) === 0 ? encodeURIComponent(text).replaceAll('%20', '+') : spelledText(text, choose)
  return parameters.map(([name, text]) => `${write(name)}=${write(text)}`).join('&')
}
