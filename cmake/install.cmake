# cmake --install: programs and libraries that find each other in one folder go to lib/tbd; bin has links.
include(GNUInstallDirs)
set(TBD_PRIVATE_DIR ${CMAKE_INSTALL_LIBDIR}/tbd)

install(TARGETS tbd-cli tbdq tbd-organizer tbd-probe tbd-replay RUNTIME DESTINATION ${TBD_PRIVATE_DIR})
install(TARGETS tbd LIBRARY DESTINATION ${TBD_PRIVATE_DIR})
install(DIRECTORY include/tbd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES man/tbd.1 man/tbdq.1 man/tbd-organizer.1 man/tbd-probe.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY editors/vscode DESTINATION ${CMAKE_INSTALL_DATADIR}/tbd/editors)
install(FILES completion/tbdq.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tbdq)
install(FILES completion/tbdq.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tbd)
install(FILES completion/_tbdq DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  file(MAKE_DIRECTORY \"\${root}/${CMAKE_INSTALL_BINDIR}\")
  foreach(tool tbd tbdq)
    file(CREATE_LINK \"../${TBD_PRIVATE_DIR}/\${tool}\" \"\${root}/${CMAKE_INSTALL_BINDIR}/\${tool}\" SYMBOLIC)
    message(STATUS \"Installing: \${root}/${CMAKE_INSTALL_BINDIR}/\${tool}\")
  endforeach()")

# tbdq-language(7) is made from the output of `tbdq help`.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/tbdq-language.7
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/scripts/make-language-page $<TARGET_FILE:tbdq> ${CMAKE_BINARY_DIR}/tbdq-language.7
    DEPENDS tbdq ${CMAKE_SOURCE_DIR}/scripts/make-language-page)
  add_custom_target(language_page ALL DEPENDS ${CMAKE_BINARY_DIR}/tbdq-language.7)
  install(FILES ${CMAKE_BINARY_DIR}/tbdq-language.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
endif()
