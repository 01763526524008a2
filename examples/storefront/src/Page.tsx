/** A page: its title in the window and in the heading, which receives the focus. */
import { type ReactNode, useEffect, useRef } from 'react'
import { lengthOf } from './name.ts'
import { shopName } from './shop.ts'

// The first page does not take the focus, so that a visitor starts at the top.
let isFirst = true

export function Page({ title, children }: { title: string; children: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · ${shopName}`
  }, [title])
  useEffect(() => {
    // Screen readers announce the focused element; without it a new page would be silent.
    if (!isFirst) heading.current?.focus({ preventScroll: true })
    isFirst = false
  }, [])
  return (
    <>
      <h1 ref={heading} className={lengthOf(title) > 40 ? 'long' : ''} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </>
  )
}
