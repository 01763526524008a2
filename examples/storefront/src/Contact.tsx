/** Contacts of the shop for an animal: mail, telephone, or its number at the counter. */
import type { Pet } from '@petstore-catalogue/petstore/client'
import { useState } from 'react'
import { shorten } from './name.ts'
import { mail, telephone } from './shop.ts'

export function Contact({ pet: { id, name, status } }: { pet: Pet }) {
  return (
    <section className="contact" aria-labelledby="contact">
      <h2 id="contact">{status === 'sold' ? 'Looking for one like this?' : 'Interested?'}</h2>
      <div className="actions">
        {mail && (
          <a className="button" href={mailTo(`${shorten(name)} (no. ${id})`)}>
            Write to us
          </a>
        )}
        {telephone && (
          <a className="button quiet" href={telTo}>
            Call {telephone}
          </a>
        )}
      </div>
      <p className="number">
        <span>No. {String(id)}</span>
        <CopyButton text={String(id)} />
      </p>
      {/* For browsers without a mail program. */}
      {mail && <p className="hint">{mail}</p>}
    </section>
  )
}

/** The mailto URL of the shop with this subject. */
export const mailTo = (subject: string): string =>
  `mailto:${mail}?subject=${encodeURIComponent(subject)}`

const telTo = `tel:${telephone.replaceAll(/[^+\d]/g, '')}`

/** The contacts of the shop in one line. */
export function Reach() {
  return (
    <>
      {mail && (
        <a className="button quiet" href={`mailto:${mail}`}>
          {mail}
        </a>
      )}
      {telephone && (
        <a className="button quiet" href={telTo}>
          {telephone}
        </a>
      )}
    </>
  )
}

function CopyButton({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false)
  // Browsers have a clipboard only for secure contexts: https and localhost.
  if (!('clipboard' in navigator)) return null
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    )
  return (
    <>
      <button type="button" className="quiet" onClick={() => void copy()}>
        Copy the number
      </button>
      <span role="status">{isCopied && 'Copied'}</span>
    </>
  )
}
